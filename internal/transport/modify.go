package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/wire/ib"
)

// Modify changes the state and attributes of q (IBA 11.2.5.2); without MaskState the state stays. With
// MaskRoute, route is the route prepared for m.Route. Errors are *StateError and *command.Error; nothing
// has changed then.
func (e *Engine) Modify(now clock.Time, q *QP, m command.ModifyQP, route *frame.Route) error {
	if q.eng != e || e.table.Get(q.num) != q {
		return command.Errorf(command.NotFound, "QP")
	}
	e.now = now
	to := q.state
	if m.Mask&command.MaskState != 0 {
		to = m.State
	}
	if err := checkTransition(q.typ, q.state, to, m.Mask); err != nil {
		return err
	}
	if err := e.checkAttributes(q, &m, route); err != nil {
		return err
	}
	if to == command.Reset || to == command.Err {
		q.leavePeer()
	}
	q.setAttributes(&m, route)
	q.enter(now, to)
	return nil
}

func (e *Engine) checkAttributes(q *QP, m *command.ModifyQP, route *frame.Route) error {
	const rights = uint32(memory.LocalWrite | memory.RemoteWrite | memory.RemoteRead | memory.RemoteAtomic | memory.FlushGlobal)
	has := func(mask command.QPMask) bool { return m.Mask&mask != 0 }
	switch {
	case m.Mask&^allAttributes != 0:
		return fieldError("Mask", m.Mask, "defined bits")
	case has(command.MaskAccess) && m.Access&^rights != 0:
		return fieldError("Access", m.Access, "local write, remote write, read and atomic, flush global")
	case has(command.MaskPKey) && m.PKeyIndex >= uint32(len(e.cfg.PKeys)):
		return fieldError("PKeyIndex", m.PKeyIndex, "a row of the P_Key table")
	case has(command.MaskRoute) && route == nil:
		return fieldError("Route", "nil", "a prepared route")
	case has(command.MaskRoute) && route.Priority >= frame.Priorities:
		return fieldError("Route.Priority", route.Priority, "0 to 7")
	case has(command.MaskMTU) && !validMTU(m.MTU):
		return fieldError("MTU", m.MTU, "256, 512, 1024, 2048 or 4096")
	case has(command.MaskTimeout) && m.Timeout > 31:
		return fieldError("Timeout", m.Timeout, "0 to 31")
	case has(command.MaskRetry) && m.Retry > 7:
		return fieldError("Retry", m.Retry, "0 to 7")
	case has(command.MaskRNRRetry) && m.RNRRetry > 7:
		return fieldError("RNRRetry", m.RNRRetry, "0 to 7")
	case has(command.MaskMinRNRTimer) && m.MinRNRTimer > 31:
		return fieldError("MinRNRTimer", m.MinRNRTimer, "0 to 31")
	case has(command.MaskRQPSN) && m.RQPSN > ib.PSNMask:
		return fieldError("RQPSN", m.RQPSN, "0 to 0xffffff")
	case has(command.MaskSQPSN) && m.SQPSN > ib.PSNMask:
		return fieldError("SQPSN", m.SQPSN, "0 to 0xffffff")
	case has(command.MaskInitiatorDepth) && m.InitiatorDepth > MaxReadAtomic:
		return fieldError("InitiatorDepth", m.InitiatorDepth, "0 to 128")
	case has(command.MaskResponderResources) && m.ResponderResources > MaxReadAtomic:
		return fieldError("ResponderResources", m.ResponderResources, "0 to 128")
	case has(command.MaskDestQPN) && (m.DestQPN <= uint32(ib.QPGSI) || m.DestQPN > maxQPN):
		return fieldError("DestQPN", m.DestQPN, "2 to 0xfffffe")
	case has(command.MaskFlowControl) && m.FlowControl > 1:
		return fieldError("FlowControl", m.FlowControl, "0 or 1")
	case has(command.MaskResponderResources) && q.resp.busyReads() > int(m.ResponderResources):
		return command.Errorf(command.Busy, "ResponderResources is %d, fewer than are in use", m.ResponderResources)
	}
	return nil
}

func validMTU(n uint32) bool { return n >= MinMTU && n <= MaxMTU && n&(n-1) == 0 }

func (q *QP) setAttributes(m *command.ModifyQP, route *frame.Route) {
	a := &q.attr
	set := func(mask command.QPMask, f func()) {
		if m.Mask&mask != 0 {
			f()
		}
	}
	set(command.MaskAccess, func() { a.Access = m.Access })
	set(command.MaskPKey, func() { a.PKeyIndex, q.pkey = m.PKeyIndex, q.eng.pkeyAt(m.PKeyIndex) })
	set(command.MaskQKey, func() { a.QKey = m.QKey })
	set(command.MaskMTU, func() { a.MTU, q.mtu = m.MTU, int(m.MTU) })
	set(command.MaskTimeout, func() { a.Timeout = m.Timeout })
	set(command.MaskRetry, func() { a.Retry = m.Retry })
	set(command.MaskRNRRetry, func() { a.RNRRetry = m.RNRRetry })
	set(command.MaskMinRNRTimer, func() { a.MinRNRTimer = m.MinRNRTimer })
	set(command.MaskRQPSN, func() { a.RQPSN = m.RQPSN })
	set(command.MaskSQPSN, func() { a.SQPSN = m.SQPSN })
	set(command.MaskInitiatorDepth, func() { a.InitiatorDepth = m.InitiatorDepth })
	set(command.MaskResponderResources, func() { a.ResponderResources = m.ResponderResources })
	set(command.MaskDestQPN, func() { a.DestQPN = m.DestQPN })
	set(command.MaskFlowControl, func() { a.FlowControl = m.FlowControl })
	set(command.MaskSQDNotify, func() { a.SQDNotify = m.SQDNotify })
	set(command.MaskRoute, func() {
		a.Route, q.route, q.srcPort = m.Route, route, 0
		q.setPriority(route.Priority)
		if q.win != nil {
			q.moveWindow()
		}
		q.capable = false
		if q.connected() {
			q.follows()
		}
	})
	q.setHalves(m)
}

// enter performs the actions for entering a state.
func (q *QP) enter(now clock.Time, to command.QPState) {
	from := q.state
	switch to {
	case command.Reset:
		q.reset()
	case command.Err:
		q.fail()
	case command.RTR:
		q.become(to)
		if q.reliable() {
			q.win = q.eng.windowTo(q.route)
		}
	case command.RTS:
		q.become(to)
		if from == command.RTR {
			q.grantNothing()
		}
		q.resume()
	case command.SQD:
		q.become(to)
		if from == command.RTS {
			q.req.draining = true
			q.checkDrained()
		}
	default:
		q.become(to)
	}
}

// reset restores q to its initial state. Posted requests are dropped without completions (IBA 10.3.1).
func (q *QP) reset() {
	q.release()
	q.eng.dropQueued(q)
	q.leaveError()
	q.become(command.Reset)
	q.attr = attributes{}
	q.route, q.mtu, q.pkey, q.srcPort = nil, 0, 0, 0
	q.setPriority(0)
	q.halve()
	q.reached = false
	if q.typ == command.XRCTarget {
		q.rq = noReceives{} // of no SRQ, until a request names one
	}
	q.eng.mem.ReleaseQP(q.num)
	q.discardPosted()
}

// discardPosted empties the rings. It takes what is there now, not what a program adds meanwhile.
func (q *QP) discardPosted() {
	for n, err := q.sq.Pending(); n > 0 && err == nil; n-- {
		var ok bool
		if ok, err = q.sq.Next(&q.eng.coming.wr); !ok {
			break
		}
		q.sq.Release(1)
	}
	if q.srq {
		return
	}
	w := q.eng.receives.get()
	defer q.eng.receives.put(w)
	for n, err := q.rq.Pending(); n > 0 && err == nil; n-- {
		var ok bool
		if ok, err = q.rq.Next(&w.wr); !ok {
			break
		}
	}
}

package transport

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/trace"
)

// fatal ends q with an event, because of an error that no completion can report.
func (q *QP) fatal(t command.EventType) {
	if q.state == command.Err {
		return
	}
	q.raise(t)
	q.fail()
}

// fail moves q to Error: everything posted, now or later, completes as flushed, in order (IBA 10.3.1,
// 10.8.4). A NAK that the responder still has to send is sent nevertheless.
func (q *QP) fail() {
	if q.state == command.Err {
		return
	}
	e := q.eng
	q.leaveACK()
	q.leavePeer()
	q.become(command.Err)
	e.failed++
	e.timers.remove(q)
	e.paced.drop(q)
	q.unanswered()
	e.leaveWindow(q)
	q.req.rnrWait, q.req.draining, q.req.credit.waiting = false, false, false
	q.req.cur = nil
	q.endInPlace(true)
	q.settleEffect(q.resp.psn, q.resp.msn, false, false) // of a packet that was refused half-way
	q.dropAllEarly()
	q.startFlush()
}

// leaveError is called before q leaves its state; Error is only left for Reset.
func (q *QP) leaveError() {
	if q.state == command.Err {
		q.eng.failed--
	}
}

// requestFailed completes the head request with an error. RC queue pairs then go to Error; UC and UD ones
// to SQE, where receiving continues.
func (q *QP) requestFailed(status ring.Status) {
	q.eng.trace.Note(trace.RequestFailed, q.num, uint32(q.req.una), uint32(status))
	q.complete(q.req.head, status)
	q.unlinkHead()
	q.sq.Release(1)
	if q.reliable() {
		q.fail()
		return
	}
	if q.state == command.RTS || q.state == command.SQD {
		q.become(command.SQE)
		q.req.stopped, q.req.cur = false, nil
		q.startFlush()
	}
}

func (q *QP) startFlush() {
	e := q.eng
	if q.flushing {
		return
	}
	q.flushing = true
	e.bell.Ring()
	if e.flushTail == nil {
		e.flushHead = q
	} else {
		e.flushTail.flushNext = q
	}
	e.flushTail = q
}

func (e *Engine) unflush(q *QP) {
	if !q.flushing {
		return
	}
	var prev *QP
	for p := e.flushHead; p != nil; prev, p = p, p.flushNext {
		if p != q {
			continue
		}
		if prev == nil {
			e.flushHead = q.flushNext
		} else {
			prev.flushNext = q.flushNext
		}
		if e.flushTail == q {
			e.flushTail = prev
		}
		break
	}
	q.flushing, q.flushNext = false, nil
}

// flush writes flushed completions directly to out, as many as fit: the number of requests posted to QPs
// in error is not bounded, so they cannot be queued here.
func (e *Engine) flush(out []Completion) int {
	n := 0
	for e.flushHead != nil {
		q := e.flushHead
		k, done := q.flush(out[n:])
		if n += k; !done {
			break
		}
		e.flushHead = q.flushNext
		if e.flushHead == nil {
			e.flushTail = nil
		}
		q.flushing, q.flushNext = false, nil
	}
	return n
}

// flush writes the flushed completions of q; done means that none are left.
func (q *QP) flush(out []Completion) (n int, done bool) {
	if q.copying > 0 || q.carrier == path.ByPrograms {
		return 0, true // the requests' memory is still in use; copyEnded or Reclaim will call again
	}
	for n < len(out) {
		c, ok := q.flushOne()
		if !ok {
			return n, true
		}
		c.Status = ring.WRFlush
		c.Context, c.QPN, c.Timestamp = q.context, q.num, uint64(q.eng.now)
		out[n] = c
		n++
	}
	return n, false
}

func (q *QP) flushOne() (Completion, bool) {
	if c, ok := q.flushSend(); ok {
		q.eng.counters.RequesterCQEErrors++
		return c, true
	}
	if q.state != command.Err {
		return Completion{}, false
	}
	c, ok := q.flushReceive()
	if ok {
		q.eng.counters.ResponderCQEErrors++
	}
	return c, ok
}

func (q *QP) flushSend() (Completion, bool) {
	s := q.req
	for r := s.head; r != nil; r = s.head {
		c, told := q.flushed(r.wr.As, r.wr.ID, r.wr.Op)
		q.unlinkHead()
		if q.sq.Release(1); told {
			return c, true
		}
	}
	wr := &q.eng.coming.wr
	for {
		ok, err := q.sq.Next(wr)
		if !ok || err != nil {
			return Completion{}, false
		}
		c, told := q.flushed(wr.As, wr.ID, wr.Op)
		if q.sq.Release(1); told {
			return c, true
		}
	}
}

// flushed returns the completion of a request that is flushed; told is false if it has none.
func (q *QP) flushed(as *Completion, id uint64, op ring.WROp) (c Completion, told bool) {
	if as != nil {
		return q.ended(as, ring.WRFlush), as != untold
	}
	return Completion{CQ: q.sendCQ, CQE: ring.CQE{ID: id, Op: op.CQOp()}}, true
}

// flushReceive flushes the receive in use and then those in the QP's own queue. Receives of an SRQ are
// shared with other QPs: there an event says that the last one in use is done (IBA 11.6.3.1).
func (q *QP) flushReceive() (Completion, bool) {
	w := q.resp.recv
	if w == nil && !q.srq {
		w = q.eng.receives.get()
		if ok, err := q.rq.Next(&w.wr); !ok || err != nil {
			q.eng.receives.put(w)
			return Completion{}, false
		}
	}
	if w == nil {
		if s := q.responder(); !s.lastWQE {
			s.lastWQE = true
			q.raise(command.EventLastWQE)
		}
		return Completion{}, false
	}
	q.resp.recv = nil
	c := Completion{CQ: q.recvCQ, CQE: ring.CQE{ID: w.wr.ID, Op: ring.CQRecv, Flags: ring.ReceiveSide}}
	q.eng.receives.put(w)
	return c, true
}

// workPosted handles a doorbell. It reports whether there is something to do.
func (q *QP) workPosted() bool {
	if q.carrier == path.ByLoop {
		return q.postedLocal()
	}
	switch q.state {
	case command.RTR, command.SQD:
		q.announceReceives()
	case command.RTS:
		q.announceReceives()
		if n, err := q.sq.Pending(); n == 0 && err == nil {
			return false // receives, which are taken when a message arrives
		}
		q.activate()
		return true
	case command.SQE, command.Err:
		q.startFlush()
		return true
	}
	return false
}

// drained reports whether no request is in progress.
func (q *QP) drained() bool { return q.req.inPlace == 0 && (q.req.head == nil || !q.req.head.begun) }

// checkDrained raises the event of a drained send queue if it was requested.
func (q *QP) checkDrained() {
	if !q.req.draining || !q.drained() {
		return
	}
	q.req.draining = false
	if q.attr.SQDNotify != 0 {
		q.raise(command.EventSQDrained)
	}
}

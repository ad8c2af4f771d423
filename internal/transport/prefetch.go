package transport

import (
	"unsafe"

	"github.com/softvpi/softvpi/internal/cpu/prefetch"
	"github.com/softvpi/softvpi/internal/transport/congestion"
	"github.com/softvpi/softvpi/wire/ib"
)

// handled is how many posted requests are prefetched.
const handled = 4

// Prefetch asks for the memory with which Receive handles a packet, from the BTH on, and Transmit what follows from
// it. A driver of many engines calls it with step 0 to 6 while others have their turns: each step looks only at what
// the one before has asked for. A payload need not follow the headers.
func (e *Engine) Prefetch(step int, packet []byte) {
	switch {
	case step == 0:
		e.prefetch()
	case len(packet) < ib.BTHLen:
	case step == 1:
		e.mem.Prefetch(0, 0)
		e.prefetchLists(uint32(ib.BTH(packet).DestQP()))
	default:
		if q := e.table.Get(uint32(ib.BTH(packet).DestQP())); q != nil {
			q.prefetch(step, packet)
		}
	}
}

// prefetch prefetches those parts of the engine itself that most packets need. Between them are the lists of priorities above 3, the
// parameters of congestion control, and what few turns copy.
func (e *Engine) prefetch() {
	between(&e.cfg.MaxBurst, &e.active.lists[4])
	between(&e.active.waiting, &e.notices.lists[1])
	between(&e.notices.waiting, &e.congestion.Reaction.Threshold)
	between(&e.congestion.CNPDSCP, &e.copies)
	between(&e.gather, &e.trail.due)
	between(&e.locals, &e.left)
	between(&e.counters.OutboundPackets, &e.counters.LocalOutboundPackets)
	prefetch.Read(unsafe.Pointer(&e.counters.ACKsSent))
	prefetch.Read(unsafe.Pointer(&e.mads.waiting))
	between(&e.idle.resp, &e.idle.resp.recv) // whether it owes anything
}

// between prefetches what lies from one field of a struct to another.
func between[A, B any](first *A, end *B) {
	prefetch.Lines(unsafe.Pointer(first), uintptr(unsafe.Pointer(end))-uintptr(unsafe.Pointer(first)))
}

// prefetchLists prefetches what the engine itself refers to.
func (e *Engine) prefetchLists(qpn uint32) {
	e.table.Prefetch(qpn)
	prefetch.Lines(unsafe.Pointer(unsafe.SliceData(e.timers.heap)), unsafe.Sizeof(timer{}))
}

// prefetch prefetches what a queue pair needs for a request, or for an answer and the requests that are posted then.
func (q *QP) prefetch(step int, packet []byte) {
	op := ib.BTH(packet).Opcode()
	switch {
	case step == 2:
		prefetch.Lines(unsafe.Pointer(q), unsafe.Sizeof(*q))
		if h := q.eng.timers.heap; len(h) > 0 {
			prefetch.Read(unsafe.Pointer(&h[0].q.deadlines))
		}
	case step == 3:
		prefetch.Lines(unsafe.Pointer(q.route), unsafe.Offsetof(q.route.SrcMAC))
		if op.IsResponse() {
			prefetch.Lines(unsafe.Pointer(q.req), unsafe.Sizeof(*q.req))
		} else {
			prefetch.Lines(unsafe.Pointer(q.resp), unsafe.Sizeof(*q.resp))
		}
	}
	switch {
	case op.IsResponse():
		q.req.prefetch(step)
		q.prefetchQueue(step)
	case op.HasRETH() && len(packet) >= ib.BTHLen+ib.RETHLen:
		q.eng.mem.Prefetch(step-2, ib.RETH(packet[ib.BTHLen:]).RKey())
	case step > 3 && q.resp != nil: // the write goes on
		q.eng.mem.Prefetch(step-3, q.resp.write.rkey)
	}
}

// prefetchQueue prefetches the send queue and the window.
func (q *QP) prefetchQueue(step int) {
	s, ok := q.sq.(*SendRing)
	switch {
	case step == 3:
		if q.win != nil {
			prefetch.Lines(unsafe.Pointer(q.win), unsafe.Sizeof(*q.win))
		}
		if ok {
			prefetch.Lines(unsafe.Pointer(s), unsafe.Sizeof(*s))
		}
	case step == 4:
		if q.win == nil {
			break
		}
		if w, ok := q.win.control.(*congestion.Window); ok {
			prefetch.Lines(unsafe.Pointer(w), unsafe.Sizeof(*w))
		}
	}
	if ok && step > 3 {
		s.Prefetch(step-4, handled)
	}
}

// prefetch prefetches the requests in progress, one after the other, and the memory of the first.
func (s *requester) prefetch(step int) {
	if step < 4 || s.head == nil {
		return
	}
	r := s.head
	for i := 4; i < step && r != nil; i++ {
		r = r.next
	}
	if r != nil {
		r.prefetch()
	}
	if step == 5 && s.head.kind != kindLocal && s.head.wr.mem.few.regions[0] != nil {
		s.head.wr.mem.few.regions[0].Prefetch()
	}
}

// prefetch prefetches a request.
func (r *request) prefetch() { prefetch.Lines(unsafe.Pointer(r), unsafe.Sizeof(*r)) }

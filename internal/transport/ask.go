package transport

import (
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// sendRead emits one READ request, up to the next chunk boundary. The rest of a partly answered chunk is
// requested in pieces that fit the window, one at a time: a responder repeats only what was requested last
// (IBA 9.7.5.1.2). The start of a chunk may be new to the responder, so a chunk is first requested whole;
// otherwise the two sides would count different numbers of messages.
func (q *QP) sendRead(r *request, o *frame.Out) int {
	s := q.req
	if int(s.slotCount) >= int(q.attr.InitiatorDepth) {
		return 0
	}
	chunk := uint32(r.piece)
	n := min(chunk-s.idx%chunk, r.packets-s.idx)
	if s.idx%chunk != 0 {
		if s.una != s.snd {
			return 0
		}
		n = min(n, uint32(q.win.size))
	}
	// A chunk may exceed a small window when nothing else is in flight.
	// Packets of this turn count too, although they are added only at its end.
	if q.win.inFlight+q.onTheWay()-int(q.req.counted) > 0 && q.room(int(n)) == 0 {
		return 0
	}
	off := uint64(s.idx) * uint64(q.mtu)
	length := min(r.length-off, uint64(n)*uint64(q.mtu))
	q.start(o, ib.RCReadRequest, true, false, nil, s.snd)
	ib.RETH(o.Head[o.HeadEnd:]).Encode(r.wr.RemoteAddr+off, r.wr.RKey, uint32(length))
	o.HeadEnd += ib.RETHLen
	q.sentAnswered(r, n)
	return 1
}

// sendAtomic emits an atomic request.
func (q *QP) sendAtomic(r *request, o *frame.Out) int {
	s := q.req
	if int(s.slotCount) >= int(q.attr.InitiatorDepth) || q.room(1) < 1 {
		return 0
	}
	op, swapAdd, compare := ib.RCFetchAdd, r.wr.CompareAdd, uint64(0)
	if r.wr.Op == ring.OpCompareSwap {
		op, swapAdd, compare = ib.RCCompareSwap, r.wr.Swap, r.wr.CompareAdd
	}
	q.start(o, op, true, false, nil, s.snd)
	ib.AtomicETH(o.Head[o.HeadEnd:]).Encode(r.wr.RemoteAddr, r.wr.RKey, swapAdd, compare)
	o.HeadEnd += ib.AtomicETHLen
	q.sentAnswered(r, 1)
	return 1
}

// sendPlaced emits an atomic write or a flush (IBA annex A19).
func (q *QP) sendPlaced(r *request, o *frame.Out) int {
	s := q.req
	if int(s.slotCount) >= int(q.attr.InitiatorDepth) || q.room(1) < 1 {
		return 0
	}
	if r.wr.Op == ring.OpFlush {
		placement, selectivity := ring.FlushOf(r.wr.Access)
		q.start(o, ib.RCFlush, true, false, nil, s.snd)
		ib.FETH(o.Head[o.HeadEnd:]).Encode(ib.Placement(placement), ib.Selectivity(selectivity))
		o.HeadEnd += ib.FETHLen
		ib.RETH(o.Head[o.HeadEnd:]).Encode(r.wr.RemoteAddr, r.wr.RKey, uint32(r.wr.CompareAdd))
	} else {
		data, ok := q.payload(r, 0, 8)
		if !ok {
			return 0
		}
		q.start(o, ib.RCAtomicWrite, true, false, data, s.snd)
		ib.RETH(o.Head[o.HeadEnd:]).Encode(r.wr.RemoteAddr, r.wr.RKey, 8)
	}
	o.HeadEnd += ib.RETHLen
	q.sentAnswered(r, 1)
	return 1
}

// sentAnswered records that a request with n response packets was sent.
func (q *QP) sentAnswered(r *request, n uint32) {
	s := q.req
	if !r.begun {
		r.begun = true
		s.reads++
	}
	if s.snd.Before(s.max) {
		q.eng.countAgain(q)
	} else if !s.timing {
		s.timing, s.timedPSN, s.timedAt = true, s.snd, q.eng.now
	}
	s.snd = s.snd.Add(n)
	s.idx += n
	s.occupy(s.snd)
	s.sinceAck, s.asked = 0, s.snd
	q.sent(r)
}

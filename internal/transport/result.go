package transport

import (
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/wire/ib"
)

// result is a read or atomic that the responder keeps, so that it can repeat the response if it is lost
// (IBA 9.7.5.1.2). Results are in PSN order.
type result struct {
	atomic  bool
	pending bool   // responses are to be sent
	first   ib.PSN // of the request
	end     ib.PSN // after its last response
	next    ib.PSN // next response
	msn     uint32
	span    memory.Span // from the next response's first byte
	left    uint64      // bytes still to be sent
	value   uint64      // original value of an atomic's operand
	told    bool        // its last response has been sent at least once
	repeat  bool        // already answered; a duplicate asked for it again
	fresh   bool        // no response to the current request has been sent yet
	waiting bool        // an atomic whose copy is in progress
	fetch   fetch
}

// resize sets how many reads and atomics are kept.
func (s *responder) resize(n int) {
	s.depth = uint8(n)
	for len(s.results) > n && !s.results[0].pending {
		s.results = append(s.results[:0], s.results[1:]...)
	}
}

func (s *responder) busyReads() int { return int(s.pending) }

// hasRoom reports whether one more read or atomic may be outstanding. A new request beyond the depth shows
// that the requester has the oldest response: if that is being repeated, a late duplicate asked for it,
// and nobody waits for it.
func (s *responder) hasRoom() bool {
	if len(s.results) < int(s.depth) {
		return true
	}
	return len(s.results) > 0 && (!s.results[0].pending || s.results[0].repeat)
}

// keep makes room for a new result by dropping the oldest. nil: more are outstanding than the requester
// was allowed.
func (q *QP) keep() *result {
	s := &q.resp
	if !s.hasRoom() {
		return nil
	}
	if s.results == nil {
		s.results = make([]result, 0, s.depth)
	}
	if len(s.results) >= int(s.depth) {
		if s.results[0].pending {
			s.pending--
		}
		q.eng.dropFetch(&s.results[0].fetch)
		s.results = append(s.results[:0], s.results[1:]...)
	}
	s.results = append(s.results, result{pending: true, fresh: true, first: s.psn, next: s.psn})
	s.pending++
	q.activate()
	return &s.results[len(s.results)-1]
}

// takeRead records a READ request; Transmit sends its responses.
func (q *QP) takeRead(h ib.RETH) bool {
	s := &q.resp
	n := uint64(h.DMALen())
	if n > MaxMessage || memory.Access(q.attr.Access)&memory.RemoteRead == 0 {
		return q.refuse(ib.NAKInvalidRequest)
	}
	span, err := q.eng.mem.Remote(q.pd, q.num, h.RKey(), h.VA(), n, memory.RemoteRead)
	if err != nil {
		return q.refuse(ib.NAKRemoteAccess)
	}
	r := q.keep()
	if r == nil {
		return q.refuse(ib.NAKInvalidRequest)
	}
	s.msn = (s.msn + 1) & ib.PSNMask
	r.msn, r.span, r.left = s.msn, span, n
	s.psn = s.psn.Add(q.packetsFor(n))
	r.end = s.psn
	return true
}

// takeAtomic carries out an atomic and keeps its result.
func (q *QP) takeAtomic(op ib.Opcode, h ib.AtomicETH) bool {
	s := &q.resp
	if memory.Access(q.attr.Access)&memory.RemoteAtomic == 0 || h.VA()%8 != 0 || !s.hasRoom() {
		return q.refuse(ib.NAKInvalidRequest)
	}
	span, err := q.eng.mem.Remote(q.pd, q.num, h.RKey(), h.VA(), 8, memory.RemoteAtomic)
	if err != nil {
		return q.refuse(ib.NAKRemoteAccess)
	}
	r := q.keep()
	if r == nil {
		return q.refuse(ib.NAKInvalidRequest)
	}
	r.atomic = true
	if err := q.atomic(r, span, op, h); err != nil {
		s.results = s.results[:len(s.results)-1]
		s.pending--
		return q.refuse(refusal(err))
	}
	s.msn = (s.msn + 1) & ib.PSNMask
	r.msn, r.end = s.msn, s.psn.Next()
	return true
}

// repeatRead answers a READ request again, from the point the requester is missing (IBA 9.7.5.1.2): it may
// ask for the tail of the original.
func (q *QP) repeatRead(psn ib.PSN, h ib.RETH) {
	s := &q.resp
	n := uint64(h.DMALen())
	i := q.keptAt(psn)
	if i < 0 || s.results[i].atomic || n > MaxMessage {
		return
	}
	r := &s.results[i]
	if psn.Add(q.packetsFor(n)).After(r.end) || memory.Access(q.attr.Access)&memory.RemoteRead == 0 {
		return
	}
	span, err := q.eng.mem.Remote(q.pd, q.num, h.RKey(), h.VA(), n, memory.RemoteRead)
	if err != nil {
		return
	}
	q.eng.counters.ResponderResync++
	q.answerAgain(i)
	q.eng.dropFetch(&r.fetch)
	r.next, r.span, r.left, r.fresh = psn, span, n, true
}

// repeatAtomic answers an atomic again with its saved result, without executing it again.
func (q *QP) repeatAtomic(psn ib.PSN) {
	if i := q.keptAt(psn); i >= 0 && q.resp.results[i].atomic {
		q.answerAgain(i)
		q.resp.results[i].next = psn
	}
}

// keptAt returns the index of the kept result that covers psn, -1 if there is none.
func (q *QP) keptAt(psn ib.PSN) int {
	for i := range q.resp.results {
		r := &q.resp.results[i]
		if !psn.Before(r.first) && psn.Before(r.end) {
			return i
		}
	}
	return -1
}

// answerAgain makes result i pending and cancels repetitions of later results. Results that were never
// answered stay pending: the duplicate may be an old one, and then nobody asks for them again.
func (q *QP) answerAgain(i int) {
	s := &q.resp
	for k := i + 1; k < len(s.results); k++ {
		if s.results[k].pending && s.results[k].told {
			s.results[k].pending = false
			s.pending--
		}
	}
	if !s.results[i].pending {
		s.results[i].pending, s.results[i].repeat = true, true
		s.pending++
	}
	q.activate()
}

func (q *QP) dropResponder() {
	s := &q.resp
	for i := range s.results {
		q.eng.dropFetch(&s.results[i].fetch)
	}
	s.results, s.pending, s.ack, s.nak = nil, 0, false, false
	if s.recv != nil {
		q.eng.receives.put(s.recv)
		s.recv = nil
	}
	q.dropEffects(false)
	q.dropAllEarly()
}

package transport

import (
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/wire/ib"
)

// result is a read, an atomic, or an atomic write or flush, that the responder keeps, so that it can repeat the response
// if it is lost (IBA 9.7.5.1.2). Results are in PSN order. Those of atomic writes and flushes are answered as reads of no
// bytes are.
type result struct {
	kind    kind   // kindRead, kindAtomic or kindPlaced
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

// results holds the reads and atomics that a responder keeps, oldest first.
type results struct {
	ring  []result
	first int32 // index in ring of the oldest
	n     int32
	from  int32 // no result before this index is pending
}

// at returns the result with this index, counted from the oldest.
func (r *results) at(i int32) *result {
	if i += r.first; int(i) >= len(r.ring) {
		i -= int32(len(r.ring))
	}
	return &r.ring[i]
}

// drop drops the oldest result.
func (r *results) drop() {
	if r.first++; int(r.first) == len(r.ring) {
		r.first = 0
	}
	r.n--
	r.from = max(r.from-1, 0)
}

// push adds a result as the newest and returns it. The caller must set all of it: it still has the values of an earlier
// one. depth is the number of results to keep.
func (r *results) push(depth int) *result {
	if int(r.n) == len(r.ring) {
		ring := make([]result, max(depth, int(r.n)+1))
		for i := range r.n {
			ring[i] = *r.at(i)
		}
		r.ring, r.first = ring, 0
	}
	r.n++
	return r.at(r.n - 1)
}

// pending returns the first result to be answered, nil if there is none.
func (r *results) pending() *result {
	for ; r.from < r.n; r.from++ {
		if p := r.at(r.from); p.pending {
			return p
		}
	}
	return nil
}

// resize sets how many reads and atomics are kept.
func (s *responder) resize(n int) {
	s.depth = uint8(n)
	for int(s.results.n) > n && !s.results.at(0).pending {
		s.results.drop()
	}
}

func (s *responder) busyReads() int { return int(s.pending) }

// hasRoom reports whether one more read or atomic may be outstanding. A new request beyond the depth shows
// that the requester has the oldest response: if that is being repeated, a late duplicate asked for it,
// and nobody waits for it.
func (s *responder) hasRoom() bool {
	if s.results.n < int32(s.depth) {
		return true
	}
	if s.results.n == 0 {
		return false
	}
	oldest := s.results.at(0)
	return !oldest.pending || oldest.repeat
}

// keep makes room for a new result by dropping the oldest. nil: more are outstanding than the requester
// was allowed.
func (q *QP) keep(k kind) *result {
	s := q.resp
	if !s.hasRoom() {
		return nil
	}
	if s.results.n >= int32(s.depth) {
		oldest := s.results.at(0)
		if oldest.pending {
			s.pending--
		}
		q.eng.dropFetch(&oldest.fetch)
		s.results.drop()
	}
	if s.pending == 0 {
		s.results.from = s.results.n
	}
	r := s.results.push(int(s.depth))
	*r = result{kind: k, pending: true, fresh: true, first: s.psn, next: s.psn}
	s.pending++
	q.activate()
	return r
}

// takeRead records a READ request; Transmit sends its responses.
func (q *QP) takeRead(h ib.RETH) bool {
	s := q.resp
	n := uint64(h.DMALen())
	if n > MaxMessage || memory.Access(q.attr.Access)&memory.RemoteRead == 0 {
		return q.refuse(ib.NAKInvalidRequest)
	}
	span, err := q.eng.mem.Remote(q.pd, q.num, h.RKey(), h.VA(), n, memory.RemoteRead)
	if err != nil {
		return q.refuse(ib.NAKRemoteAccess)
	}
	r := q.keep(kindRead)
	if r == nil {
		return q.refuse(ib.NAKInvalidRequest)
	}
	s.msn = (s.msn + 1) & ib.PSNMask
	// Field by field: copying the span as a whole would have to wait for the stores of its fields.
	r.msn, r.span.Region, r.span.Addr, r.left = s.msn, span.Region, span.Addr, n
	s.psn = s.psn.Add(q.packetsFor(n))
	r.end = s.psn
	return true
}

// takeAtomic carries out an atomic and keeps its result.
func (q *QP) takeAtomic(op ib.Opcode, h ib.AtomicETH) bool {
	s := q.resp
	if memory.Access(q.attr.Access)&memory.RemoteAtomic == 0 || h.VA()%8 != 0 || !s.hasRoom() {
		return q.refuse(ib.NAKInvalidRequest)
	}
	span, err := q.eng.mem.Remote(q.pd, q.num, h.RKey(), h.VA(), 8, memory.RemoteAtomic)
	if err != nil {
		return q.refuse(ib.NAKRemoteAccess)
	}
	r := q.keep(kindAtomic)
	if r == nil {
		return q.refuse(ib.NAKInvalidRequest)
	}
	if err := q.atomic(r, span, op, h); err != nil {
		s.results.n--
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
	s := q.resp
	n := uint64(h.DMALen())
	i := q.keptAt(psn)
	if i < 0 || n > MaxMessage {
		return
	}
	r := s.results.at(i)
	if r.kind != kindRead {
		return
	}
	if psn.Add(q.packetsFor(n)).After(r.end) || memory.Access(q.attr.Access)&memory.RemoteRead == 0 {
		return
	}
	pd, ok := q.protection()
	if !ok {
		return
	}
	span, err := q.eng.mem.Remote(pd, q.num, h.RKey(), h.VA(), n, memory.RemoteRead)
	if err != nil {
		return
	}
	q.eng.counters.ResponderResync++
	q.answerAgain(i)
	q.eng.dropFetch(&r.fetch)
	r.next, r.span, r.left, r.fresh = psn, span, n, true
}

// repeatDone answers an atomic, atomic write or flush again as it was answered, without executing it again.
func (q *QP) repeatDone(psn ib.PSN, k kind) {
	if i := q.keptAt(psn); i >= 0 && q.resp.results.at(i).kind == k {
		q.answerAgain(i)
		q.resp.results.at(i).next, q.resp.results.at(i).fresh = psn, true
	}
}

// keptAt returns the index of the kept result that covers psn, -1 if there is none.
func (q *QP) keptAt(psn ib.PSN) int32 {
	for i := range q.resp.results.n {
		r := q.resp.results.at(i)
		if !psn.Before(r.first) && psn.Before(r.end) {
			return i
		}
	}
	return -1
}

// answerAgain makes result i pending and cancels repetitions of later results. Results that were never
// answered stay pending: the duplicate may be an old one, and then nobody asks for them again.
func (q *QP) answerAgain(i int32) {
	s := q.resp
	for k := i + 1; k < s.results.n; k++ {
		if r := s.results.at(k); r.pending && r.told {
			r.pending = false
			s.pending--
		}
	}
	if r := s.results.at(i); !r.pending {
		r.pending, r.repeat = true, true
		s.pending++
		s.results.from = min(s.results.from, i)
	}
	q.activate()
}

func (q *QP) dropResponder() {
	s := q.resp
	for i := range s.results.n {
		q.eng.dropFetch(&s.results.at(i).fetch)
	}
	s.results, s.pending, s.ack, s.nak = results{}, 0, false, false
	if s.recv != nil {
		q.eng.receives.put(s.recv)
		s.recv = nil
	}
	q.dropEffects(false)
	q.dropAllEarly()
}

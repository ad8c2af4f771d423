package transport

import (
	"errors"

	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// The responder's side of atomic writes and flushes (IBA annex A19). They take a place among the reads and atomics that a
// responder keeps, are answered by a RDMA READ Response Only without payload once everything before them is in memory, and a
// duplicate is answered again but not carried out again.

// takeAtomicWrite stores the word of an atomic write. What was written before must be in memory by then: where that
// waits for its owner, only the same owner can keep the order, else the request comes again later.
func (q *QP) takeAtomicWrite(h ib.RETH, data []byte) bool {
	if !q.mayStore(h.VA(), len(data)) || h.DMALen() != 8 || !q.resp.hasRoom() {
		return q.refuse(ib.NAKInvalidRequest)
	}
	span, err := q.eng.mem.Remote(q.pd, q.num, h.RKey(), h.VA(), 8, memory.RemoteWrite)
	if err != nil {
		return q.refuse(ib.NAKRemoteAccess)
	}
	if !q.settled() && !deferred(span.Region) {
		return false
	}
	err = span.Region.StoreWord(span.Addr, data)
	if errors.Is(err, memory.ErrBlock) {
		q.startWrite(span.Region, span.Addr, data, true, q.effectOp())
		q.started(1)
		err = nil
	}
	if err != nil {
		return q.refuse(refusal(err))
	}
	return q.keepPlaced()
}

// takeFlush checks a flush. There is nothing else to do: no cache lies between what the responder has written and those
// who look at it, and the response waits for copies that are under way.
func (q *QP) takeFlush(f ib.FETH, h ib.RETH) bool {
	need := flushRights(f.Placement())
	if need == 0 || memory.Access(q.attr.Access)&need != need || f.Selectivity() > ib.FlushRegion || !q.resp.hasRoom() {
		return q.refuse(ib.NAKInvalidRequest)
	}
	if q.eng.mem.Flush(q.pd, h.RKey(), h.VA(), uint64(h.DMALen()), f.Selectivity() == ib.FlushRegion, need) != nil {
		return q.refuse(ib.NAKRemoteAccess)
	}
	return q.keepPlaced()
}

// mayStore reports whether the peer may do atomic writes at all, and this one of n bytes at va.
func (q *QP) mayStore(va uint64, n int) bool {
	return memory.Access(q.attr.Access)&memory.RemoteWrite != 0 && va%8 == 0 && n == 8
}

// flushRights returns the rights that a flush needs, 0 if the placement types are none that exist.
func flushRights(p ib.Placement) (need memory.Access) {
	if p&^(ib.PlaceGlobal|ib.PlacePersistent) != 0 {
		return 0
	}
	if p&ib.PlaceGlobal != 0 {
		need |= memory.FlushGlobal
	}
	if p&ib.PlacePersistent != 0 {
		need |= memory.FlushPersistent
	}
	return need
}

// keepPlaced keeps what was carried out for its response.
func (q *QP) keepPlaced() bool {
	s := q.resp
	r := q.keep(kindPlaced)
	s.msn = (s.msn + 1) & ib.PSNMask
	r.msn, r.end = s.msn, s.psn.Next()
	return true
}

// openPlaced checks an atomic write or flush that came over the local path.
func (q *QP) openPlaced(r *request) bool {
	wr := &r.wr
	if q.resp.depth == 0 {
		return q.refuse(ib.NAKInvalidRequest)
	}
	if wr.Op == ring.OpAtomicWrite {
		if !q.mayStore(wr.RemoteAddr, int(r.length)) {
			return q.refuse(ib.NAKInvalidRequest)
		}
		return q.openRemote(r, memory.RemoteWrite)
	}
	placement, selectivity := ring.FlushOf(wr.Access)
	need := flushRights(ib.Placement(placement))
	if memory.Access(q.attr.Access)&need != need {
		return q.refuse(ib.NAKInvalidRequest)
	}
	if q.eng.mem.Flush(q.pd, wr.RKey, wr.RemoteAddr, wr.CompareAdd, ib.Selectivity(selectivity) == ib.FlushRegion, need) != nil {
		return q.refuse(ib.NAKRemoteAccess)
	}
	return true
}

// storeWord stores the word of an atomic write that came over the local path.
func (q *QP) storeWord(r *request) error {
	word := r.wr.Inline
	if word == nil {
		word = q.eng.word[:]
		if err := r.wr.mem.read(word, 0); err != nil {
			return requesterError{err}
		}
	}
	span, err := q.writeSpan()
	if err != nil {
		return err
	}
	return span.Region.StoreWord(span.Addr, word)
}

package ring

import "encoding/binary"

// Borrowed is a receive ring in the hands of the peer of its QP, on the direct
// path: the peer takes requests from it while the loop leaves it alone.
type Borrowed struct {
	base
	next uint32
	seen uint32
}

// OpenBorrowed opens the receive ring in b where its consumer is.
func OpenBorrowed(b []byte, g Geometry) (*Borrowed, error) {
	r, err := open(b, g, recvHeader)
	if err != nil {
		return nil, err
	}
	q := &Borrowed{base: r}
	q.Resume()
	return q, nil
}

// Resume begins anew where the consumer is.
func (q *Borrowed) Resume() {
	q.next = q.h.consumer.Load()
	q.seen = q.next
}

// Peek copies the next request into wr and leaves it where it is; false when
// there is none, or none that can be.
func (q *Borrowed) Peek(wr *RecvWR) bool {
	if q.seen == q.next {
		p := q.h.producer.Load()
		if p == q.next || p-q.next > q.count {
			return false
		}
		q.seen = p
	}
	b := q.slot(q.next)
	wr.ID = binary.LittleEndian.Uint64(b)
	wr.NumSGE = binary.LittleEndian.Uint32(b[8:])
	if wr.NumSGE > MaxSGE || int(wr.NumSGE)*sgeSize > len(b)-recvHeader {
		return false
	}
	getSGEs(wr.SGE[:wr.NumSGE], b[recvHeader:])
	return true
}

// Take gives the entry that Peek saw back and returns the index after it.
func (q *Borrowed) Take() uint32 {
	q.next++
	q.h.consumer.Store(q.next)
	return q.next
}

// Lend gives the ring into other hands and returns where they begin: until Reclaim
// nothing is taken from it. Consumer side, as all that follows.
func (q *Recv) Lend() uint32 {
	q.lent = true
	return q.c.next
}

// Waiting returns how many requests wait in the ring by its header alone, as for a
// ring that is in other hands. Nonsense counts as none.
func (q *Recv) Waiting() int {
	if n := q.h.producer.Load() - q.h.consumer.Load(); n <= q.count {
		return int(n)
	}
	return 0
}

// Consumer returns the consumer index in the ring's header, which others may have
// written.
func (q *Recv) Consumer() uint32 { return q.h.consumer.Load() }

// Reclaim takes the ring back from other hands: the entries before index were
// taken. ErrCorrupt ends the queue where that cannot be.
func (q *Recv) Reclaim(index uint32) error {
	q.lent = false
	if q.c.broken {
		return ErrCorrupt
	}
	// The ring went on turning meanwhile: only the distance to the producer counts.
	if p := q.h.producer.Load(); p-index > q.count {
		return q.c.fail("consumer index", uint64(index))
	}
	q.c.next, q.c.done, q.c.seen = index, index, index
	q.h.consumer.Store(index)
	return nil
}

// Idle reports whether every request that was posted has completed. Producer
// side.
func (s *Send) Idle() bool { return s.h.consumer.Load() == s.p.next }

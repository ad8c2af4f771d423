package ring

import (
	"encoding/binary"
	"fmt"
)

// RecvWR is a receive request. The consumer's Next fills it in and leaves SGE beyond NumSGE untouched.
type RecvWR struct {
	ID     uint64
	NumSGE uint32
	SGE    [MaxSGE]SGE
}

// RecvGeometry returns the shape of a receive ring for requests of at most sge
// elements.
func RecvGeometry(depth, sge int) Geometry {
	return Geometry{Entries: entries(depth), Stride: (recvHeader + sge*sgeSize + 31) &^ 31}
}

// Recv is the receive ring of a QP or an SRQ. A program fills it with Post; the
// loop takes requests with Next, which gives the entry back at once.
type Recv struct {
	base
	p         producer
	c         consumer
	delegated bool
}

// OpenRecv opens the ring in b, new zeroed memory.
func OpenRecv(b []byte, g Geometry) (*Recv, error) {
	q := new(Recv)
	if err := q.Open(b, g); err != nil {
		return nil, err
	}
	return q, nil
}

// Open is OpenRecv for a Recv that already has its place in memory.
func (q *Recv) Open(b []byte, g Geometry) error {
	r, err := open(b, g, recvHeader)
	if err == nil {
		*q = Recv{base: r}
	}
	return err
}

// ResumeRecv opens the program's side of a ring that Move filled: posted requests follow those already in
// it.
func ResumeRecv(b []byte, g Geometry) (*Recv, error) {
	q, err := OpenRecv(b, g)
	if err != nil {
		return nil, err
	}
	q.p.next = q.h.producer.Load()
	q.p.seen = q.h.consumer.Load()
	return q, nil
}

// Move copies the waiting requests to next, a new ring of the same stride with which the SRQ continues.
// The program must not post meanwhile. ErrFull if next is too small, errLayout if its stride differs; in
// these cases q is unchanged. Consumer side only.
func (q *Recv) Move(next *Recv) error {
	n, err := q.c.refresh(&q.base)
	switch {
	case err != nil:
		return err
	case n > next.count:
		return ErrFull
	case q.stride != next.stride:
		return fmt.Errorf("%w: stride %d: allowed: %d", errLayout, next.stride, q.stride)
	}
	for i := range n {
		copy(next.slot(i), q.slot(q.c.next+i))
	}
	next.h.producer.Store(n)
	q.c.broken = true
	return nil
}

// Post publishes a request: ErrFull if there is no free entry, errLayout if it does not fit one. Post is
// no full barrier: loads after it may be reordered before it, up to the next store of sync/atomic.
// Producer side only.
func (q *Recv) Post(wr *RecvWR) error {
	if wr.NumSGE > MaxSGE {
		return fmt.Errorf("%w: %d SGEs: allowed: up to %d", errLayout, wr.NumSGE, MaxSGE)
	}
	return q.PostList(wr.ID, wr.SGE[:wr.NumSGE])
}

// PostList is Post for a request that is not in a RecvWR.
func (q *Recv) PostList(id uint64, list []SGE) error {
	if err := q.p.room(&q.base); err != nil {
		return err
	}
	b := q.slot(q.p.next)
	if most := min(MaxSGE, (len(b)-recvHeader)/sgeSize); len(list) > most {
		return fmt.Errorf("%w: %d SGEs: allowed: up to %d", errLayout, len(list), most)
	}
	binary.LittleEndian.PutUint64(b, id)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(list)))
	binary.LittleEndian.PutUint32(b[12:], 0)
	putSGEs(b[recvHeader:], list)
	q.p.publish(&q.base)
	return nil
}

// Pending returns how many requests wait to be taken: the posted receives, as counted by SRQ limits and
// end-to-end credits. Consumer side only.
func (q *Recv) Pending() (int, error) {
	if q.delegated {
		return q.Waiting(), nil
	}
	n, err := q.c.refresh(&q.base)
	return int(n), err
}

// Next takes the next request into wr; false if there is none. ErrCorrupt ends the queue. Consumer side
// only.
func (q *Recv) Next(wr *RecvWR) (bool, error) {
	if q.delegated {
		return false, nil
	}
	n, err := q.c.pending(&q.base)
	if n == 0 || err != nil {
		return false, err
	}
	b := q.slot(q.c.next)
	wr.ID = binary.LittleEndian.Uint64(b)
	wr.NumSGE = binary.LittleEndian.Uint32(b[8:])
	if wr.NumSGE > MaxSGE || int(wr.NumSGE)*sgeSize > len(b)-recvHeader {
		return false, q.c.fail("number of SGEs", uint64(wr.NumSGE))
	}
	getSGEs(wr.SGE[:wr.NumSGE], b[recvHeader:])
	q.c.next++
	q.c.release(&q.base, 1)
	return true, nil
}

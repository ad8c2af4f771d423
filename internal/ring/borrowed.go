package ring

import (
	"encoding/binary"
	"unsafe"

	"github.com/softvpi/softvpi/internal/cpu/prefetch"
	"github.com/softvpi/softvpi/internal/cpu/release"
)

// Borrowed is a receive ring delegated to its QP's peer on the direct path: the peer takes requests from it
// while the loop leaves it alone.
type Borrowed struct {
	base
	next uint32
	seen uint32
	// consumer points to the header's consumer index. Go loads the header's first word (a nil check)
	// before it passes the address of a later one to a call, and the responder writes that first word: it
	// would be fetched from the responder's processor for every message.
	consumer *uint32
}

// OpenBorrowed opens the receive ring in b at its current consumer index.
func OpenBorrowed(b []byte, g Geometry) (*Borrowed, error) {
	r, err := open(b, g, recvHeader)
	if err != nil {
		return nil, err
	}
	q := &Borrowed{base: r, consumer: word(&r.h.consumer)}
	q.Resume()
	return q, nil
}

// Resume starts over at the current consumer index.
func (q *Borrowed) Resume() {
	q.next = q.h.consumer.Load()
	q.seen = q.next
}

// Peek copies the next request into wr without taking it; false if there is none or it is invalid.
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

// Take gives back the entry that Peek returned and returns the index after it. It prefetches the next
// entry, which is in the cache of the responder that filled it.
func (q *Borrowed) Take() uint32 {
	q.next++
	release.Store32(q.consumer, q.next)
	prefetch.Read(unsafe.Pointer(&q.slot(q.next)[0]))
	return q.next
}

// Delegate delegates the ring to the peer and returns the index at which it begins: until Reclaim the loop takes
// nothing from it. Consumer side only, as is all that follows.
func (q *Recv) Delegate() uint32 {
	q.delegated = true
	return q.c.next
}

// Waiting returns how many requests wait in the ring, judging by its header alone, for a ring that is
// delegated. An impossible value counts as none.
func (q *Recv) Waiting() int {
	if n := q.h.producer.Load() - q.h.consumer.Load(); n <= q.count {
		return int(n)
	}
	return 0
}

// Consumer returns the consumer index in the ring's header, which others may have written.
func (q *Recv) Consumer() uint32 { return q.h.consumer.Load() }

// Reclaim takes the ring back: the entries before index have been taken. ErrCorrupt ends the queue if
// index is impossible.
func (q *Recv) Reclaim(index uint32) error {
	q.delegated = false
	return q.c.reclaim(&q.base, index)
}

func (c *consumer) reclaim(r *base, index uint32) error {
	if c.broken {
		return ErrCorrupt
	}
	// The ring went on turning meanwhile: only the distance to the producer counts.
	if p := r.h.producer.Load(); p-index > r.count {
		return c.fail("consumer index", uint64(index))
	}
	c.next, c.done, c.seen = index, index, index
	r.h.consumer.Store(index)
	return nil
}

// Delegate delegates the ring back to its own program, which then carries out what it posts: until Reclaim the
// loop takes nothing from it. Every entry taken must have been given back. Consumer side only, like the
// next four.
func (s *Send) Delegate() { s.delegated = true }

// Reclaim takes the ring back: the entries before the consumer index of its header have been carried out.
// ErrCorrupt as for Recv.
func (s *Send) Reclaim() error {
	s.delegated = false
	return s.c.reclaim(&s.base, s.h.consumer.Load())
}

// Consumer returns the consumer index in the ring's header.
func (s *Send) Consumer() uint32 { return s.h.consumer.Load() }

func (s *Send) waiting() int {
	if n := s.h.producer.Load() - s.h.consumer.Load(); n <= s.count {
		return int(n)
	}
	return 0
}

// Idle reports whether every posted request has completed. Producer side only, as are the rest.
func (s *Send) Idle() bool { return s.h.consumer.Load() == s.p.next }

// Front copies the oldest uncompleted request into wr; false if there is none. It is for a program that
// carries out its requests itself.
func (s *Send) Front(wr *SendWR) bool {
	c := s.h.consumer.Load()
	if c == s.p.next {
		return false
	}
	var w Work
	entry := s.slot(c)
	if field, _ := w.get(entry); field != "" {
		return false
	}
	wr.set(&w)
	w.elements(entry, wr.SGE[:wr.NumSGE])
	return true
}

// DropFront gives back the entry that Front returned.
func (s *Send) DropFront() { s.h.consumer.Store(s.h.consumer.Load() + 1) }

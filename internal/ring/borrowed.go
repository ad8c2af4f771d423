package ring

import (
	"encoding/binary"
	"unsafe"

	"github.com/softvpi/softvpi/internal/prefetch"
	"github.com/softvpi/softvpi/internal/release"
)

// Borrowed is a receive ring in the hands of the peer of its QP, on the direct
// path: the peer takes requests from it while the loop leaves it alone.
type Borrowed struct {
	base
	next uint32
	seen uint32
	// consumer is that of the header. Go looks at the header's first word before it
	// hands the address of a later one to a call, and the first is the responder's: it
	// would be fetched from the responder's processor for every message.
	consumer *uint32
}

// OpenBorrowed opens the receive ring in b where its consumer is.
func OpenBorrowed(b []byte, g Geometry) (*Borrowed, error) {
	r, err := open(b, g, recvHeader)
	if err != nil {
		return nil, err
	}
	q := &Borrowed{base: r, consumer: word(&r.h.consumer)}
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

// Take gives the entry that Peek saw back and returns the index after it. The next
// entry lies with the responder, which filled it: it is asked for.
func (q *Borrowed) Take() uint32 {
	q.next++
	release.Store32(q.consumer, q.next)
	prefetch.Read(unsafe.Pointer(&q.slot(q.next)[0]))
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

// Lend gives the ring back into the hands of its program, which carries out what it
// posted itself: until Reclaim nothing is taken from it. Every entry that was taken
// has been given back. Consumer side, as the next four.
func (s *Send) Lend() { s.lent = true }

// Reclaim takes the ring back: the entries before the consumer index of its header
// were carried out. ErrCorrupt as for Recv.
func (s *Send) Reclaim() error {
	s.lent = false
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

// Idle reports whether every request that was posted has completed. Producer
// side, as the rest.
func (s *Send) Idle() bool { return s.h.consumer.Load() == s.p.next }

// Front copies the oldest request that has not completed into wr; false: there is
// none. For a program that carries its requests out itself.
func (s *Send) Front(wr *SendWR) bool {
	c := s.h.consumer.Load()
	if c == s.p.next {
		return false
	}
	field, _ := wr.get(s.slot(c))
	return field == ""
}

// DropFront gives the entry of Front back.
func (s *Send) DropFront() { s.h.consumer.Store(s.h.consumer.Load() + 1) }

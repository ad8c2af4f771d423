// Package ring holds the queues between a program and the adapters' loop: send,
// receive and completion rings and the doorbell queue, as fixed little-endian
// layouts over memory that both sides map. docs/spec/ipc.md has the layouts in tables.
//
// Every queue has one producer and one consumer (Doorbells: many producers). Each side opens the ring for
// itself and keeps its own index in its own memory; the shared words are accessed with sync/atomic only.
// The loop never trusts a word that a program can write: an entry is copied once and then checked, and an
// impossible index ends that queue, and only that one, with ErrCorrupt.
package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/internal/cpu/release"
)

// HeaderSize is the size of a ring's header; the entries follow it.
const HeaderSize = 256

// SequenceAt is the offset of a completion queue's word that counts events, on which its waiters sleep.
const SequenceAt = 132

// MaxEntries bounds the entries of one ring.
const MaxEntries = 1 << 22

// Errors of rings.
var (
	ErrFull     = errors.New("ring is full")
	ErrCorrupt  = errors.New("ring is corrupt")
	errOverflow = errors.New("completion queue overflow")
	errLayout   = errors.New("ring memory does not fit the layout")
)

// header is the start of every ring. The words that each side writes, and those of events, have cache
// lines of their own.
type header struct {
	producer atomic.Uint32 // 0: entries published
	_        [60]byte
	consumer atomic.Uint32 // 64: entries given back
	_        [60]byte
	arm      atomic.Uint32 // 128: CQ: which completions raise an event
	sequence atomic.Uint32 // 132: CQ: counts events; futex word
	sleepers atomic.Uint32 // 136: CQ: waiters in the futex
	_        [52]byte
	flags    atomic.Uint32 // 192: Flag bits
	told     atomic.Uint32 // 196: Doorbells: see News
	taken    atomic.Uint32 // 200: Doorbells: see News
	quiet    atomic.Uint32 // 204: Send: see Quiet
	_        [48]byte
}

// These do not compile unless the operands are equal.
const (
	_ = -(unsafe.Sizeof(header{}) ^ HeaderSize)
	_ = -(unsafe.Offsetof(header{}.sequence) ^ SequenceAt)
)

// Flag bits of a ring's header, set by the loop.
const (
	FlagError uint32 = 1 << iota // the ring overflowed or was corrupt: nothing more will come
	FlagMoved                    // CQ: what follows the last entry is in the CQ's new ring
)

// Geometry is the shape of a ring.
type Geometry struct {
	Entries int // a power of two
	Stride  int // bytes per entry
}

// Size returns the bytes that the ring takes, a multiple of 64.
func (g Geometry) Size() int { return HeaderSize + (g.Entries*g.Stride+63)&^63 }

// entries returns the number of entries of a ring for depth requests: depth
// rounded up to a power of two, at least 1.
func entries(depth int) int {
	n := 1
	for n < depth {
		n <<= 1
	}
	return n
}

// base is common to all rings: the mapped words and the shape.
type base struct {
	h       *header
	entries []byte
	stride  uint32
	count   uint32
}

func open(b []byte, g Geometry, minStride int) (base, error) {
	if !littleEndian() {
		return base{}, fmt.Errorf("%w: rings need a little-endian machine", errLayout)
	}
	if g.Entries < 1 || g.Entries > MaxEntries || g.Entries&(g.Entries-1) != 0 {
		return base{}, fmt.Errorf("%w: %d entries: allowed: powers of two up to %d", errLayout, g.Entries, MaxEntries)
	}
	if g.Stride < minStride || g.Stride > maxStride || g.Stride%8 != 0 {
		return base{}, fmt.Errorf("%w: stride %d: allowed: multiples of 8 from %d to %d", errLayout, g.Stride, minStride, maxStride)
	}
	if len(b) < g.Size() {
		return base{}, fmt.Errorf("%w: %d bytes, needs %d", errLayout, len(b), g.Size())
	}
	if uintptr(unsafe.Pointer(&b[0]))%64 != 0 {
		return base{}, fmt.Errorf("%w: memory is not aligned to 64 bytes", errLayout)
	}
	return base{
		h:       (*header)(unsafe.Pointer(&b[0])),
		entries: b[HeaderSize:g.Size():g.Size()],
		stride:  uint32(g.Stride),
		count:   uint32(g.Entries),
	}, nil
}

func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }

// slot returns the bytes of the entry with this free-running index.
func (r *base) slot(index uint32) []byte {
	i := uint64(index&(r.count-1)) * uint64(r.stride)
	return r.entries[i : i+uint64(r.stride) : i+uint64(r.stride)]
}

// Flags returns the header's flag bits.
func (r *base) Flags() uint32 { return r.h.flags.Load() }

// setFlag sets a flag bit. Loop side only.
func (r *base) setFlag(f uint32) {
	r.h.flags.Store(r.h.flags.Load() | f)
}

// producer is the state of the producer side; only its owner accesses it.
type producer struct {
	next uint32 // entries published
	seen uint32 // consumer index as last read
}

// room ensures that there is a free slot.
func (p *producer) room(r *base) error {
	if p.next-p.seen < r.count {
		return nil
	}
	p.seen = r.h.consumer.Load()
	switch used := p.next - p.seen; {
	case used > r.count:
		return ErrCorrupt
	case used == r.count:
		return ErrFull
	}
	return nil
}

// publish makes the entry visible to whoever sees the new index. It is no full barrier: the caller's later
// loads may be reordered before it, up to the next store of sync/atomic.
func (p *producer) publish(r *base) {
	p.next++
	release.Store32(word(&r.h.producer), p.next)
}

// consumer is the state of the consumer side.
type consumer struct {
	next   uint32 // entries taken
	done   uint32 // entries given back
	seen   uint32 // producer index as last read
	broken bool
}

// pending returns how many entries can be taken.
func (c *consumer) pending(r *base) (uint32, error) {
	if c.broken {
		return 0, ErrCorrupt
	}
	if c.seen != c.next {
		return c.seen - c.next, nil
	}
	return c.refresh(r)
}

func (c *consumer) refresh(r *base) (uint32, error) {
	if c.broken {
		return 0, ErrCorrupt
	}
	p := r.h.producer.Load()
	// The producer must lie between what was taken and done + count.
	if p-c.done > r.count || p-c.done < c.next-c.done {
		c.broken = true
		return 0, fmt.Errorf("%w: producer %d with %d of %d entries in use", ErrCorrupt, p, c.next-c.done, r.count)
	}
	c.seen = p
	return p - c.next, nil
}

// release gives back the n oldest entries taken. It is not a full barrier: no producer sleeps until there is room, and
// each looks again when it has more to put in.
func (c *consumer) release(r *base, n uint32) {
	if n > c.next-c.done {
		n = c.next - c.done
	}
	c.done += n
	release.Store32(word(&r.h.consumer), c.done)
}

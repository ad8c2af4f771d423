package ring

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Doorbells is the queue into which the threads of a program put the numbers of queues with new requests.
// Nothing is lost: when it is full it sets a flag that all queues must be looked at. Several producers,
// one consumer.
//
// Header: 0 producer, 64 consumer, 128 sleep flag (the loop wants to be woken), 192 scan flag (look at all
// queues). An entry is a word, 0 while it is empty.
type Doorbells struct {
	base
	done   uint32
	broken bool
}

// doorbellValid marks an entry that holds a number.
const doorbellValid = 1 << 31

// maxDoorbell is the largest number that a doorbell can carry.
const maxDoorbell = doorbellValid - 1

// DoorbellGeometry returns the shape of a queue of n doorbells.
func DoorbellGeometry(n int) Geometry { return Geometry{Entries: max(entries(n), 2), Stride: 8} }

// OpenDoorbells opens the queue in b, new zeroed memory.
func OpenDoorbells(b []byte, g Geometry) (*Doorbells, error) {
	r, err := open(b, g, 8)
	if err != nil {
		return nil, err
	}
	return &Doorbells{base: r}, nil
}

func (d *Doorbells) cell(index uint32) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&d.slot(index)[0]))
}

// Ring enters number, at most maxDoorbell, and reports whether the loop sleeps and the caller must wake
// it. Any thread of the program.
func (d *Doorbells) Ring(number uint32) (wake bool) {
	for {
		p := d.h.producer.Load()
		if p-d.h.consumer.Load() >= d.count {
			d.h.flags.Store(1)
			break
		}
		if d.h.producer.CompareAndSwap(p, p+1) {
			d.cell(p).Store(number&maxDoorbell | doorbellValid)
			break
		}
	}
	// After the store: the loop sets its flag first and then looks.
	return d.h.arm.Load() != 0 && d.h.arm.Swap(0) != 0
}

// Drain takes up to len(out) numbers. scan: numbers were lost, look at all queues of the program.
// ErrCorrupt ends the queue. Loop side only.
func (d *Doorbells) Drain(out []uint32) (n int, scan bool, err error) {
	if d.broken {
		return 0, false, ErrCorrupt
	}
	if d.h.flags.Load() != 0 {
		d.h.flags.Store(0)
		scan = true
	}
	if used := d.h.producer.Load() - d.done; used > d.count {
		d.broken = true
		return 0, false, fmt.Errorf("%w: %d doorbells in %d entries", ErrCorrupt, used, d.count)
	}
	for n < len(out) {
		c := d.cell(d.done)
		v := c.Load()
		if v == 0 { // empty, or its producer is about to fill it
			break
		}
		c.Store(0)
		d.done++
		out[n] = v & maxDoorbell
		n++
	}
	if n > 0 {
		d.h.consumer.Store(d.done)
	}
	return n, scan, nil
}

// Pending reports whether Drain would find something. Loop side only.
func (d *Doorbells) Pending() bool {
	return !d.broken && (d.h.flags.Load() != 0 || d.cell(d.done).Load() != 0)
}

// Sleep announces that the loop is about to sleep. It returns false if there is a doorbell: do not sleep.
// Loop side only.
func (d *Doorbells) Sleep() bool {
	d.h.arm.Store(1)
	if d.Pending() {
		d.h.arm.Store(0)
		return false
	}
	return true
}

// Awake withdraws Sleep. Loop side only.
func (d *Doorbells) Awake() { d.h.arm.Store(0) }

func word(w *atomic.Uint32) *uint32 { return (*uint32)(unsafe.Pointer(w)) }

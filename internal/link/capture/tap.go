package capture

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"
)

// MaxSnap is the length of the longest packet that can pass a link.
const MaxSnap = 65535 + 18

const (
	// defaultRing is the memory of a tap between the data path and its reader.
	defaultRing = 16 << 20
	// MinRing holds a few packets of any length.
	MinRing = 1 << 18
	// maxRing limits the memory of one capture.
	maxRing = 1 << 30
)

// Packet is a packet that a tap took. Data is valid until the reader's next call of Next.
type Packet struct {
	Time     time.Time
	Length   int // on the wire; Data may hold less (the snap length)
	Outbound bool
	Ethernet bool // Data begins with an Ethernet header, otherwise with IP
	// InfiniBand says that Data is a complete InfiniBand packet, from the LRH to the VCRC.
	InfiniBand bool
	// Missed is how many packets were missed between the previous one and this one.
	Missed uint64
	// Mark is the frame.Out's if it was sent and had one.
	Mark uint32
	// Note says that it is no packet: Data is what somebody has noted at this place of the capture.
	Note bool
	Data []byte
}

// Tap copies packets into a ring of fixed size: those that find no room are counted as missed, so that a
// slow reader never slows the adapter. The data path's owner writes, one goroutine reads.
type Tap struct {
	snap int
	ring []byte // a power of two long
	head atomic.Uint64
	tail atomic.Uint64

	taken, missed atomic.Uint64
	gap           uint64 // missed since the last packet that was taken
	pending       bool   // something was written since the last wake
	wake          chan struct{}
	scratch       []byte
}

// A record in the ring: this header, the data, and padding to a multiple of 8 bytes.
const (
	recordLength  = 0  // u32 on the wire
	recordData    = 4  // u32 bytes that follow
	recordTime    = 8  // i64 nanoseconds since 1970
	recordMissed  = 16 // u64
	recordFlags   = 24 // u64
	recordHeader  = 32
	flagOutbound  = 1
	flagEthernet  = 2
	flagIB        = 4
	flagNote      = 8
	markShift     = 32
	recordAligned = 8
)

// sizeError is a snap length or ring size outside its limits.
type sizeError struct {
	Field         string
	Got, Min, Max int
}

func (e *sizeError) Error() string {
	return fmt.Sprintf("%s is %d, want %d to %d bytes", e.Field, e.Got, e.Min, e.Max)
}

// NewTap returns a tap that keeps the first snap bytes of each packet (0: all of it) in a ring of at
// least size bytes (0: defaultRing). The error is a *sizeError.
func NewTap(snap, size int) (*Tap, error) {
	switch {
	case snap == 0:
		snap = MaxSnap
	case snap < 0 || snap > MaxSnap:
		return nil, &sizeError{"snap length", snap, 0, MaxSnap}
	}
	if size == 0 {
		size = defaultRing
	}
	if size < MinRing || size > maxRing {
		return nil, &sizeError{"ring", size, MinRing, maxRing}
	}
	n := MinRing
	for n < size {
		n *= 2
	}
	return &Tap{snap: snap, ring: make([]byte, n), wake: make(chan struct{}, 1)}, nil
}

// Wake returns a channel that receives when there may be something to read.
func (t *Tap) Wake() <-chan struct{} { return t.wake }

// Counts returns how many packets were taken and how many were missed.
func (t *Tap) Counts() (taken, missed uint64) { return t.taken.Load(), t.missed.Load() }

// put copies a packet, given in pieces, into the ring.
func (t *Tap) put(at time.Time, flags uint64, pieces ...[]byte) {
	length := 0
	for _, p := range pieces {
		length += len(p)
	}
	if !t.write(at, flags, t.gap, length, min(length, t.snap), pieces...) {
		t.gap++
		t.missed.Add(1)
		return
	}
	t.taken.Add(1)
	t.gap, t.pending = 0, true
}

// Note puts something into the ring that a reader finds as a Packet with its Note set, behind the packets until now. The data path's
// owner calls it. It is left out if there is no room. The reader is not woken by it alone.
func (t *Tap) Note(at time.Time, b []byte) { t.write(at, flagNote, 0, len(b), len(b), b) }

// write adds a record of which keep of length bytes are kept; false: there is no room.
func (t *Tap) write(at time.Time, flags, missed uint64, length, keep int, pieces ...[]byte) bool {
	size := (recordHeader + keep + recordAligned - 1) &^ (recordAligned - 1)
	head := t.head.Load()
	if int(head-t.tail.Load())+size > len(t.ring) {
		return false
	}
	var h [recordHeader]byte
	binary.NativeEndian.PutUint32(h[recordLength:], uint32(length))
	binary.NativeEndian.PutUint32(h[recordData:], uint32(keep))
	binary.NativeEndian.PutUint64(h[recordTime:], uint64(at.UnixNano()))
	binary.NativeEndian.PutUint64(h[recordMissed:], missed)
	binary.NativeEndian.PutUint64(h[recordFlags:], flags)
	pos := t.copy(head, h[:])
	for _, p := range pieces {
		n := min(len(p), keep)
		pos = t.copy(pos, p[:n])
		keep -= n
	}
	t.head.Store(head + uint64(size))
	return true
}

// signal wakes the reader once for a batch.
func (t *Tap) signal() {
	if !t.pending {
		return
	}
	t.pending = false
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Next fills p with the oldest packet in the ring; false: there is none.
func (t *Tap) Next(p *Packet) bool {
	tail := t.tail.Load()
	if tail == t.head.Load() {
		return false
	}
	var h [recordHeader]byte
	t.read(tail, h[:])
	keep := int(binary.NativeEndian.Uint32(h[recordData:]))
	flags := binary.NativeEndian.Uint64(h[recordFlags:])
	if cap(t.scratch) < keep {
		t.scratch = make([]byte, max(keep, 4096))
	}
	p.Data = t.scratch[:keep]
	t.read(tail+recordHeader, p.Data)
	p.Length = int(binary.NativeEndian.Uint32(h[recordLength:]))
	p.Time = time.Unix(0, int64(binary.NativeEndian.Uint64(h[recordTime:])))
	p.Missed = binary.NativeEndian.Uint64(h[recordMissed:])
	p.Outbound, p.Ethernet = flags&flagOutbound != 0, flags&flagEthernet != 0
	p.InfiniBand, p.Note, p.Mark = flags&flagIB != 0, flags&flagNote != 0, uint32(flags>>markShift)
	size := (recordHeader + keep + recordAligned - 1) &^ (recordAligned - 1)
	t.tail.Store(tail + uint64(size))
	return true
}

// copy copies b into the ring at position pos and returns the position after it.
func (t *Tap) copy(pos uint64, b []byte) uint64 {
	at := int(pos & uint64(len(t.ring)-1))
	if n := copy(t.ring[at:], b); n < len(b) {
		copy(t.ring, b[n:])
	}
	return pos + uint64(len(b))
}

func (t *Tap) read(pos uint64, b []byte) {
	at := int(pos & uint64(len(t.ring)-1))
	if n := copy(b, t.ring[at:]); n < len(b) {
		copy(b[n:], t.ring)
	}
}

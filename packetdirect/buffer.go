package packetdirect

import (
	"github.com/softvpi/softvpi/verbs"
)

// line is the multiple of bytes at which buffers begin: that of the processor's caches.
const line = 64

// Pool is buffers of one size, in memory that the adapter reaches.
type Pool struct {
	a       *Adapter
	mr      *verbs.MR
	buffers []Buffer
	all     []*Buffer
}

// Buffer holds a frame (PD_BUFFER). It is the program's until it is posted, and again once it has been drained; in between its
// bytes must not be touched.
type Buffer struct {
	// Context is the program's own.
	Context any

	room   []byte
	n      int
	sge    verbs.SGE // of all of room
	pd     *verbs.PD
	posted bool
	good   bool
	hash   uint32

	headers, segment int // of a large packet
}

// NewPool allocates n buffers of size bytes each; 0: the longest frame. The errors are verbs.ErrInvalid and
// verbs.ErrExhausted.
func (a *Adapter) NewPool(n, size int) (*Pool, error) {
	if size == 0 {
		size = a.LongestFrame()
	}
	const most = 1 << 20
	if n < 1 || n > most {
		return nil, failed("new pool", verbs.ErrInvalid, "n is %d, want 1 to %d", n, most)
	}
	if size < leastFrame || size > mostFrame {
		return nil, failed("new pool", verbs.ErrInvalid, "size is %d, want %d to %d bytes, or 0", size, leastFrame, mostFrame)
	}
	stride := (size + line - 1) &^ (line - 1)
	mr, err := a.pd.Allocate(n*stride, verbs.LocalWrite)
	if err != nil {
		return nil, err
	}
	p := &Pool{a: a, mr: mr, buffers: make([]Buffer, n), all: make([]*Buffer, n)}
	for i := range p.buffers {
		b := &p.buffers[i]
		b.room = mr.Bytes()[i*stride : i*stride+size : i*stride+size]
		b.sge, b.pd = mr.SGE(i*stride, size), a.pd
		p.all[i] = b
	}
	if !a.add(func() { a.pools[p] = true }) {
		_ = mr.Deregister()
		return nil, failed("new pool", verbs.ErrClosed, "")
	}
	return p, nil
}

// Buffers returns the buffers of the pool. The slice is the program's.
func (p *Pool) Buffers() []*Buffer { return p.all }

// Close frees the buffers, none of which may be posted (verbs.ErrBusy) or used any more.
func (p *Pool) Close() error {
	for i := range p.buffers {
		if p.buffers[i].posted {
			return failed("close pool", verbs.ErrBusy, "buffer %d is posted", i)
		}
	}
	p.a.mu.Lock()
	_, open := p.a.pools[p]
	delete(p.a.pools, p)
	p.a.mu.Unlock()
	if !open {
		return nil
	}
	return p.mr.Deregister()
}

// Bytes returns the frame: what was received, or what will be sent.
func (b *Buffer) Bytes() []byte { return b.room[:b.n] }

// GoodChecksums reports whether the frame that was received carries TCP or UDP, and its checksum and that of IPv4 are right.
func (b *Buffer) GoodChecksums() bool { return b.good }

// Hash returns the Toeplitz hash over the frame by which a Spread has chosen its queue; 0: the frame has none of the fields, or came by
// a filter of the queue itself.
func (b *Buffer) Hash() uint32 { return b.hash }

// SetLarge says that the frame, n bytes at the beginning of Room, is a large packet of TCP over IPv4 or IPv6: headers bytes of headers,
// at most MostHeaders, and data, which leaves in frames of at most segment bytes of data each, whose lengths, identifications,
// sequence numbers, flags and checksums are made. It panics if there is no room for n bytes, as slicing does. SetLen and Set make
// it an ordinary frame again, as does receiving into it.
func (b *Buffer) SetLarge(n, headers, segment int) {
	b.SetLen(n)
	b.headers, b.segment = headers, segment
}

// frames returns as how many frames of how many bytes together it leaves.
func (b *Buffer) frames() (frames, bytes uint64) {
	if b.segment == 0 {
		return 1, uint64(b.n)
	}
	data := b.n - b.headers
	n := max(1, (data+b.segment-1)/b.segment)
	return uint64(n), uint64(data + n*b.headers)
}

// Room returns all bytes of the buffer, for making a frame.
func (b *Buffer) Room() []byte { return b.room }

// SetLen says how long the frame is that the program has made at the beginning of Room; it panics if there is no room for it,
// as slicing does.
func (b *Buffer) SetLen(n int) { b.n, b.segment = len(b.room[:n]), 0 }

// Set makes the frame a copy of f, and returns how much of it there was room for.
func (b *Buffer) Set(f []byte) int {
	b.n, b.segment = copy(b.room, f), 0
	return b.n
}

package hostside

import "github.com/softvpi/softvpi/internal/offload"

const (
	// smallBuffers bounds what a host has handed over and the function still needs, beside the large buffers: these may be
	// largeBuffers times NumTcb, but what is in them no more than NumTcb of the largest frames. So many frames of one packet
	// each can be on their way that batches of them pay.
	smallBuffers = 1024
	smallSize    = 2048
	largeBuffers = 4
	// largeSize has room for the largest frame of a host, with its virtio header and one byte to see that it is too long.
	largeSize = offload.TunnelHeaderLen + offload.MaxPacket + 64
)

// buffer is memory for a frame.
type buffer struct {
	b    []byte
	used int // bytes of the frame that the function has
	pool *pool
}

// pool is a bounded number of buffers, made when they are first needed, for a bounded number of bytes.
type pool struct {
	free []*buffer
	made int // that there may be
	left int // of these, that may still be made
	size int
	room int // bytes that the function may still have in them, before the next is the last
}

// newPool returns a pool of n buffers.
func newPool(n, size, room int) pool { return pool{made: n, left: n, size: size, room: room} }

// some reports whether get returns a buffer.
func (p *pool) some() bool { return p.room > 0 && (len(p.free) > 0 || p.left > 0) }

func (p *pool) get() *buffer {
	if p.room <= 0 {
		return nil
	}
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	if p.left == 0 {
		return nil
	}
	p.left--
	return &buffer{b: make([]byte, p.size), pool: p}
}

// give notes that the function has a frame of n bytes in the buffer, until put.
func (b *buffer) give(n int) { b.used, b.pool.room = n, b.pool.room-n }

func (b *buffer) put() {
	p := b.pool
	p.room += b.used
	b.used = 0
	p.free = append(p.free, b)
}

// sends are the buffers of a send queue, in the order in which they were posted.
type sends struct {
	ring    []*buffer
	head, n int
}

func (s *sends) push(b *buffer) {
	if s.n == len(s.ring) {
		ring := make([]*buffer, max(64, 2*len(s.ring)))
		for i := range s.n {
			ring[i] = s.ring[(s.head+i)%len(s.ring)]
		}
		s.ring, s.head = ring, 0
	}
	s.ring[(s.head+s.n)%len(s.ring)] = b
	s.n++
}

func (s *sends) pop() *buffer {
	b := s.ring[s.head]
	s.ring[s.head] = nil
	s.head, s.n = (s.head+1)%len(s.ring), s.n-1
	return b
}

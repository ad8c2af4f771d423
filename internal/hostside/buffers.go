package hostside

import "github.com/softvpi/softvpi/internal/offload"

const (
	// smallBuffers bounds what a host has handed over and the function still needs, beside NumTcb large buffers.
	smallBuffers = 1024
	smallSize    = 2048
	// largeSize has room for the largest frame of a host, with its virtio header and one byte to see that it is too long.
	largeSize = offload.HeaderLen + offload.MaxPacket + 64
)

// buffer is memory for a frame.
type buffer struct {
	b    []byte
	pool *pool
}

// pool is a bounded number of buffers, made when they are first needed.
type pool struct {
	free []*buffer
	left int // that may still be made
	size int
}

func (p *pool) get() *buffer {
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	if p.left == 0 {
		return nil
	}
	p.left--
	return &buffer{make([]byte, p.size), p}
}

func (b *buffer) put() { b.pool.free = append(b.pool.free, b) }

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

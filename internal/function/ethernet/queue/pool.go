package queue

import "sync/atomic"

// Pool is the receive queue of a physical function by which a virtual port gets its frames: what it has counted, and, of the default
// queue, which several ports share, the buffers that they have together. The rings of a pool have one owner; its counters may be read
// at any time.
type Pool struct {
	most int // buffers; 0: each ring has its own
	used int

	packets, bytes, dropped, split atomic.Uint64
}

// PoolCounters are those of a Pool.
type PoolCounters struct {
	Packets, Bytes uint64
	// Dropped are packets for which there was no buffer, and Split those whose headers were put into buffers of their own.
	Dropped, Split uint64
}

// NewPool returns a pool of so many buffers for all its rings; 0: each ring has its own.
func NewPool(most int) *Pool { return &Pool{most: most} }

// Counters returns the counters as they are now.
func (p *Pool) Counters() PoolCounters {
	return PoolCounters{Packets: p.packets.Load(), Bytes: p.bytes.Load(), Dropped: p.dropped.Load(), Split: p.split.Load()}
}

// Count counts packets that have come, Drop one of them for which there was no buffer, and Split one that was divided.
func (p *Pool) Count(packets, bytes int) {
	if p != nil {
		p.packets.Add(uint64(packets))
		p.bytes.Add(uint64(bytes))
	}
}

// Drop counts a packet for which there was no buffer.
func (p *Pool) Drop() {
	if p != nil {
		p.dropped.Add(1)
	}
}

// Split counts a packet whose headers were put into a buffer of their own.
func (p *Pool) Split() {
	if p != nil {
		p.split.Add(1)
	}
}

// take takes a buffer, if there is one.
func (p *Pool) take() bool {
	if p == nil || p.most == 0 {
		return true
	}
	if p.used >= p.most {
		return false
	}
	p.used++
	return true
}

// give gives n buffers back.
func (p *Pool) give(n int) {
	if p != nil && p.most != 0 {
		p.used -= n
	}
}

// room returns how many of n buffers there are.
func (p *Pool) room(n int) int {
	if p == nil || p.most == 0 {
		return n
	}
	return max(0, min(n, p.most-p.used))
}

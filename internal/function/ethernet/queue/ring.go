// Package queue holds the rings of an Ethernet function: received frames that wait for their host, and sends that wait for
// their port.
package queue

import (
	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/internal/offload"
)

// Packet is a received frame.
type Packet struct {
	// Parts are the frame in pieces, without a tag that was taken out. With header-data split the first piece is the
	// headers.
	Parts [][]byte
	// Header is what a system needs to know about the frame: its places are those in the frame as it is in Parts.
	Header offload.Header
	// Sums are what is known of its checksums.
	Sums offload.Sums
	// Tagged says that a tag was taken out, with this control information.
	Tagged bool
	TCI    uint16
	// Priority is that with which it has come.
	Priority uint8
	// Hash is the RSS hash, and HashType over what it is; 0: it has none.
	Hash     uint32
	HashType rss.Types
	// FCS is the frame check sequence, if HasFCS (IgnoreFCS).
	HasFCS bool
	FCS    uint32
}

// Len returns the length of the frame in bytes.
func (p *Packet) Len() (n int) {
	for _, b := range p.Parts {
		n += len(b)
	}
	return n
}

// slot is a packet in a ring, with memory of its own.
type slot struct {
	packet Packet
	head   []byte
	data   []byte
	parts  [2][]byte
}

// Ring keeps copies of packets. Its memory grows with what it has had to keep at a time, up to its size, and is used again, as far
// as it is for no more packets than are to be kept.
type Ring struct {
	slots []slot
	size  int
	first int
	count int
	bytes int // of memory
	keep  int // slots without a packet that may have memory
	spare int // those that have
	pool  *Pool
}

// NewRing returns a ring for so many packets, which keeps the memory of so many that are gone.
func NewRing(size, keep int) *Ring { return &Ring{size: size, keep: keep} }

// Keep changes for how many packets that are gone memory is kept.
func (r *Ring) Keep(n int) { r.keep = n }

// Len returns how many packets wait.
func (r *Ring) Len() int { return r.count }

// Room returns for how many more there is room.
func (r *Ring) Room() int { return r.pool.room(r.size - r.count) }

// Share makes an empty ring one of a pool.
func (r *Ring) Share(p *Pool) { r.pool = p }

// Release gives the pool back what the packets take that are still in the ring, which is not used any more.
func (r *Ring) Release() {
	r.pool.give(r.count)
	r.pool = nil
}

// Memory returns how many bytes the ring holds for packets.
func (r *Ring) Memory() int { return r.bytes }

// Put adds a copy of a packet. split says that its first piece stays one of its own. It returns false if there is no room.
func (r *Ring) Put(p *Packet, split bool) bool {
	if r.count == r.size || !r.pool.take() {
		return false
	}
	if r.count == len(r.slots) {
		r.grow()
	}
	s := r.at(r.count)
	r.count++
	before := cap(s.head) + cap(s.data)
	if before > 0 {
		r.spare--
	}
	s.head, s.data = s.head[:0], s.data[:0]
	for i, b := range p.Parts {
		if split && i == 0 {
			s.head = append(s.head, b...)
		} else {
			s.data = append(s.data, b...)
		}
	}
	r.bytes += cap(s.head) + cap(s.data) - before
	s.packet = *p
	if split {
		s.parts = [2][]byte{s.head, s.data}
		s.packet.Parts = s.parts[:]
	} else {
		s.parts = [2][]byte{s.data}
		s.packet.Parts = s.parts[:1]
	}
	return true
}

func (r *Ring) at(i int) *slot {
	if i += r.first; i >= len(r.slots) {
		i -= len(r.slots)
	}
	return &r.slots[i]
}

// grow doubles the number of slots, all of which are in use.
func (r *Ring) grow() {
	slots := make([]slot, min(max(16, 2*len(r.slots)), r.size))
	for i := range r.count {
		s := &slots[i]
		*s = *r.at(i)
		s.packet.Parts = s.parts[:len(s.packet.Parts)]
	}
	r.slots, r.first = slots, 0
}

// Peek fills in packets from the front of the ring, which stay there, and returns how many.
func (r *Ring) Peek(list []Packet) int {
	n := min(len(list), r.count)
	for i := range list[:n] {
		list[i] = r.at(i).packet
	}
	return n
}

// Remove removes n packets from the front. Their memory may be used by the next Put, or is given back.
func (r *Ring) Remove(n int) {
	for i := range n {
		r.empty(r.at(i))
	}
	r.count -= n
	r.pool.give(n)
	if r.first += n; r.first >= len(r.slots) && len(r.slots) > 0 {
		r.first -= len(r.slots)
	}
	if r.count == 0 {
		r.first = 0 // short queues use the beginning of their memory only
	}
}

// empty takes a slot's packet, and gives its memory back if there is enough without it.
func (r *Ring) empty(s *slot) {
	n := cap(s.head) + cap(s.data)
	switch {
	case n == 0:
	case r.spare < r.keep:
		r.spare++
	default:
		r.bytes -= n
		*s = slot{}
	}
}

package ethernet

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/wire/eth"
)

const (
	cellSize     = 256
	cellsPerPage = 256
	// tagRoom is left before a frame for a tag.
	tagRoom = 8
	// mostBytes is the longest frame, without its frame check sequence.
	mostBytes = 16 << 10
	// macs is the length of the two addresses before a tag.
	macs = 12
)

// Ref names a frame of a Store; 0: none.
type Ref uint32

// held is a frame of a store.
type held struct {
	cell  uint32 // the first
	start uint16 // where the frame begins there
	kept  uint16 // bytes
	more  uint16 // bytes that it has besides, which nobody keeps
	vlan  uint16 // to which it belongs while it is in a switch
	next  uint32 // free frame, while it is none
	charge
	class uint8 // its priority
	refs  uint8 // ports where it waits
}

// charge is what a frame takes of a group.
type charge struct {
	size        uint32
	port, group uint8
}

// Store keeps frames, in cells of 256 bytes. It grows with the frames that are in it at once, and never by others. The zero value
// is empty.
type Store struct {
	frames []held
	free   uint32 // the first of those that are none; 0: there is no such
	used   int
	pages  []*[cellsPerPage * cellSize]byte
	next   []uint32 // by cell: that of the frame behind it, or the next free one, plus one
	spare  uint32   // the first free cell plus one
}

// Put keeps a copy of a frame, without frame check sequence, of which the first bytes are given, at least an Ethernet header, and
// more bytes, that nobody will look at, follow: both together at most 16 KB. It returns 0 if that is not so.
func (s *Store) Put(b []byte, more int) Ref {
	if len(b) < eth.EthernetLen || more < 0 || len(b)+more > mostBytes {
		return 0
	}
	r := s.place()
	h := &s.frames[r]
	h.start, h.kept, h.more, h.vlan, h.refs = tagRoom, uint16(len(b)), uint16(more), 0, 0
	h.cell = s.cell()
	n := copy(s.bytes(h.cell)[tagRoom:], b)
	for last := h.cell; n < len(b); {
		c := s.cell()
		s.next[last], last = c+1, c
		n += copy(s.bytes(c), b[n:])
	}
	return r
}

// place returns a frame that is not in use.
func (s *Store) place() Ref {
	s.used++
	if s.free == 0 {
		if len(s.frames) == 0 {
			s.frames = append(s.frames, held{}) // 0 is none
		}
		s.frames = append(s.frames, held{})
		return Ref(len(s.frames) - 1)
	}
	r := s.free
	s.free = s.frames[r].next
	return Ref(r)
}

// cell returns one that is not in use.
func (s *Store) cell() uint32 {
	if s.spare == 0 {
		s.grow()
	}
	c := s.spare - 1
	s.spare = s.next[c]
	return c
}

func (s *Store) grow() {
	first := uint32(len(s.next))
	s.pages = append(s.pages, new([cellsPerPage * cellSize]byte))
	for i := range uint32(cellsPerPage) {
		s.next = append(s.next, first+i+2)
	}
	s.next[len(s.next)-1] = 0
	s.spare = first + 1
}

func (s *Store) bytes(cell uint32) []byte {
	at := cell % cellsPerPage * cellSize
	return s.pages[cell/cellsPerPage][at : at+cellSize : at+cellSize]
}

// Len returns a frame's length in bytes, without frame check sequence.
func (s *Store) Len(r Ref) int { h := &s.frames[r]; return int(h.kept) + int(h.more) }

// Frames returns how many frames are in the store.
func (s *Store) Frames() int { return s.used }

// Head returns a frame's first bytes, its headers among them, in the store's own memory.
func (s *Store) Head(r Ref) []byte {
	h := &s.frames[r]
	return s.bytes(h.cell)[h.start:min(int(h.start)+int(h.kept), cellSize)]
}

// Append adds the bytes of a frame that the store keeps to b.
func (s *Store) Append(b []byte, r Ref) []byte {
	h := &s.frames[r]
	head := s.Head(r)
	b = append(b, head...)
	c := h.cell
	for left := int(h.kept) - len(head); left > 0; left -= cellSize {
		c = s.next[c] - 1
		b = append(b, s.bytes(c)[:min(left, cellSize)]...)
	}
	return b
}

// Drop gives back a frame's memory.
func (s *Store) Drop(r Ref) {
	h := &s.frames[r]
	c := h.cell
	for left := int(h.start) + int(h.kept) - cellSize; left > 0; left -= cellSize {
		c = s.next[c] - 1
	}
	s.next[c], s.spare = s.spare, h.cell+1
	h.next, s.free = s.free, uint32(r)
	s.used--
}

// again returns a second copy of a frame.
func (s *Store) again(r Ref) Ref {
	n := s.place()
	from, to := s.frames[r], &s.frames[n]
	*to = from
	to.cell = s.cell()
	copy(s.bytes(to.cell), s.bytes(from.cell))
	c, last := from.cell, to.cell
	for left := int(from.start) + int(from.kept) - cellSize; left > 0; left -= cellSize {
		c = s.next[c] - 1
		k := s.cell()
		copy(s.bytes(k), s.bytes(c))
		s.next[last], last = k+1, k
	}
	return n
}

// tag puts a VLAN tag into a frame that has none.
func (s *Store) tag(r Ref, tci uint16) {
	h := &s.frames[r]
	b := s.bytes(h.cell)[h.start-4:]
	copy(b, b[4:4+macs])
	binary.BigEndian.PutUint16(b[macs:], uint16(eth.TypeVLAN))
	binary.BigEndian.PutUint16(b[macs+2:], tci)
	h.start -= 4
	h.kept += 4
}

// untag takes the VLAN tag out of a frame that has one.
func (s *Store) untag(r Ref) {
	h := &s.frames[r]
	b := s.bytes(h.cell)[h.start:]
	copy(b[4:], b[:macs])
	h.start += 4
	h.kept -= 4
}

package ethernet

import (
	"encoding/binary"
	"unsafe"

	"github.com/softvpi/softvpi/internal/cpu/prefetch"
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

// held is a frame of a store, or a cell behind the first of one.
type held struct {
	start uint16 // where the frame begins in its first cell
	kept  uint16 // bytes
	more  uint16 // bytes that it has besides, which nobody keeps
	vlan  uint16 // to which it belongs while it is in a switch
	next  uint32 // the cell behind this one; what is free after this, while it is
	charge
	class  uint8 // its priority
	refs   uint8 // ports where it waits
	tagged bool  // it had a tag when it came into the switch where it is
}

// charge is what a frame takes of a group.
type charge struct {
	size        uint32
	port, group uint8
}

// page is cells whose memory is beside each other.
type page [cellsPerPage][cellSize]byte

// Store keeps frames, in cells of 256 bytes. The first cell of a frame has its number, so that both are found at once. It grows with
// the frames that are in it at once, and never by others. The zero value is empty.
type Store struct {
	frames []held // by cell; the first is none
	free   uint32 // the first that is none; 0: there is no such
	used   int
	pages  []*page
}

// Put keeps a copy of a frame, without frame check sequence, of which the first bytes are given, at least an Ethernet header, and
// more bytes, that nobody will look at, follow: both together at most 16 KB. It returns 0 if that is not so.
func (s *Store) Put(b []byte, more int) Ref {
	if len(b) < eth.EthernetLen || more < 0 || len(b)+more > mostBytes {
		return 0
	}
	s.used++
	r := s.cell()
	h := &s.frames[r]
	h.start, h.kept, h.more, h.vlan, h.refs = tagRoom, uint16(len(b)), uint16(more), 0, 0
	n := copy(s.bytes(r)[tagRoom:], b)
	for last := r; n < len(b); {
		c := s.cell()
		s.frames[last].next, last = c, c
		n += copy(s.bytes(c), b[n:])
	}
	return Ref(r)
}

// Reserve is Put for a frame whose first bytes, at most 240, the caller writes into what it returns: all of them.
func (s *Store) Reserve(n, more int) (Ref, []byte) {
	s.used++
	r := s.cell()
	h := &s.frames[r]
	h.start, h.kept, h.more, h.vlan, h.refs = tagRoom, uint16(n), uint16(more), 0, 0
	return Ref(r), s.bytes(r)[tagRoom : tagRoom+n]
}

// cell returns one that is not in use.
func (s *Store) cell() uint32 {
	if s.free == 0 {
		s.grow()
	}
	c := s.free
	s.free = s.frames[c].next
	return c
}

func (s *Store) grow() {
	first := uint32(len(s.frames))
	s.pages = append(s.pages, new(page))
	for i := range uint32(cellsPerPage) {
		s.frames = append(s.frames, held{next: first + i + 1})
	}
	s.frames[len(s.frames)-1].next = 0
	s.free = max(first, 1) // 0 is none
}

func (s *Store) bytes(cell uint32) []byte {
	return s.pages[cell/cellsPerPage][cell%cellsPerPage][:]
}

// prefetch fetches what is looked at first of a frame into the caches.
func (s *Store) prefetch(r Ref) {
	prefetch.Read(unsafe.Pointer(&s.frames[r]))
	prefetch.Read(unsafe.Pointer(&s.pages[r/cellsPerPage][r%cellsPerPage]))
}

// Len returns a frame's length in bytes, without frame check sequence.
func (s *Store) Len(r Ref) int { h := &s.frames[r]; return int(h.kept) + int(h.more) }

// Frames returns how many frames are in the store.
func (s *Store) Frames() int { return s.used }

// Size returns how many bytes of memory the store takes.
func (s *Store) Size() int {
	return len(s.pages)*cellsPerPage*cellSize + cap(s.frames)*int(unsafe.Sizeof(held{}))
}

// Head returns a frame's first bytes, its headers among them, in the store's own memory.
func (s *Store) Head(r Ref) []byte {
	h := &s.frames[r]
	first := uint(h.start)
	return s.bytes(uint32(r))[first:min(first+uint(h.kept), cellSize)]
}

// Append adds the bytes of a frame that the store keeps to b.
func (s *Store) Append(b []byte, r Ref) []byte {
	h := &s.frames[r]
	head := s.Head(r)
	b = append(b, head...)
	c := h.next
	for left := int(h.kept) - len(head); left > 0; left -= cellSize {
		b = append(b, s.bytes(c)[:min(left, cellSize)]...)
		c = s.frames[c].next
	}
	return b
}

// Drop gives back a frame's memory.
func (s *Store) Drop(r Ref) {
	h := &s.frames[r]
	c := uint32(r)
	for left := int(h.start) + int(h.kept) - cellSize; left > 0; left -= cellSize {
		c = s.frames[c].next
	}
	s.frames[c].next, s.free = s.free, uint32(r)
	s.used--
}

// again returns a second copy of a frame.
func (s *Store) again(r Ref) Ref {
	s.used++
	n := s.cell()
	s.frames[n] = s.frames[r]
	copy(s.bytes(n), s.bytes(uint32(r)))
	c, last := s.frames[r].next, n
	for left := int(s.frames[r].start) + int(s.frames[r].kept) - cellSize; left > 0; left -= cellSize {
		k := s.cell()
		copy(s.bytes(k), s.bytes(c))
		s.frames[last].next, last = k, k
		c = s.frames[c].next
	}
	return Ref(n)
}

// tag puts a VLAN tag into a frame that has none.
func (s *Store) tag(r Ref, tci uint16) {
	h := &s.frames[r]
	b := s.bytes(uint32(r))[h.start-4:]
	copy(b, b[4:4+macs])
	binary.BigEndian.PutUint16(b[macs:], uint16(eth.TypeVLAN))
	binary.BigEndian.PutUint16(b[macs+2:], tci)
	h.start -= 4
	h.kept += 4
}

// untag takes the VLAN tag out of a frame that has one.
func (s *Store) untag(r Ref) {
	h := &s.frames[r]
	b := s.bytes(uint32(r))[h.start:]
	copy(b[4:], b[:macs])
	h.start += 4
	h.kept -= 4
}

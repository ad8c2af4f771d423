package transport

import (
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
)

// buffers is the local memory of a work request, checked once and walked in order: a cursor remembers the
// element at the current offset.
type buffers struct {
	sges    []ring.SGE
	length  uint64
	id      uint64 // distinguishes this use of the buffers from others
	start   uint64 // message offset at which the element at the cursor begins
	at      int32  // that element
	gathers bool   // all of it is in memory whose writes are gathered
	few     elements[[fewSGE]ring.SGE, [fewSGE]*memory.Region]
	many    *elements[[MaxSGE]ring.SGE, [MaxSGE]*memory.Region] // nil: there have only been few
}

// fewSGE is how many elements most work requests have at most.
const fewSGE = 2

// elements are what sges and regions are in.
type elements[S, R any] struct {
	sges    S
	regions R
}

// hold returns the room for n elements, which are those of the request from now on.
func (b *buffers) hold(n int) []ring.SGE {
	if n <= fewSGE {
		b.sges = b.few.sges[:n]
	} else {
		b.sges = b.room().sges[:n]
	}
	return b.sges
}

// room returns what many elements are in.
func (b *buffers) room() *elements[[MaxSGE]ring.SGE, [MaxSGE]*memory.Region] {
	if b.many == nil {
		b.many = new(elements[[MaxSGE]ring.SGE, [MaxSGE]*memory.Region])
	}
	return b.many
}

// check looks up the regions of sges (IBA 10.6.4); need is LocalWrite if data is to be placed there. It
// returns false for a local protection error. The buffers may be used all the same: whatever reaches the
// elements concerned then fails.
func (b *buffers) check(t *memory.Table, pd memory.PD, sges []ring.SGE, need memory.Access) bool {
	b.sges, b.at, b.start, b.length = sges, 0, 0, 0
	b.gathers = true
	regions := b.few.regions[:]
	if len(sges) > fewSGE {
		regions = b.room().regions[:]
	}
	good := true
	for i := range sges {
		s := &sges[i]
		r, err := t.Local(pd, s.LKey, s.Addr, uint64(s.Length), need)
		if err != nil {
			r, good = memory.Denied(), false
		}
		regions[i] = r
		b.gathers = b.gathers && (s.Length == 0 || r.Gathers() != nil)
		b.length += uint64(s.Length)
	}
	return good
}

// region returns that of an element, which check has looked up.
func (b *buffers) region(i int32) *memory.Region {
	if len(b.sges) <= fewSGE {
		return b.few.regions[i]
	}
	return b.many.regions[i]
}

// seek moves the cursor to the element that holds offset off.
func (b *buffers) seek(off uint64) {
	if off < b.start {
		b.at, b.start = 0, 0
	}
	for int(b.at) < len(b.sges) && off >= b.start+uint64(b.sges[b.at].Length) {
		b.start += uint64(b.sges[b.at].Length)
		b.at++
	}
}

// view returns n bytes of the message from off if they lie in one mapped element, else nil.
func (b *buffers) view(off, n uint64) []byte {
	b.seek(off)
	if int(b.at) >= len(b.sges) {
		return nil
	}
	s, r := &b.sges[b.at], b.region(b.at)
	in := off - b.start
	if in+n > uint64(s.Length) || r.Dead() {
		return nil
	}
	return r.Slice(s.Addr+in, n)
}

// piece returns at most n bytes of the message from off that lie in one mapped element; nil if that
// element is not mapped, or gone.
func (b *buffers) piece(off, n uint64) []byte {
	b.seek(off)
	if int(b.at) >= len(b.sges) {
		return nil
	}
	return b.view(off, min(n, b.start+uint64(b.sges[b.at].Length)-off))
}

// read copies the message from off to dst. The error comes from the memory.
func (b *buffers) read(dst []byte, off uint64) error {
	for len(dst) > 0 {
		b.seek(off)
		if int(b.at) >= len(b.sges) {
			return memory.ErrBounds
		}
		s := &b.sges[b.at]
		in := off - b.start
		n := min(uint64(len(dst)), uint64(s.Length)-in)
		if err := b.region(b.at).Read(dst[:n], s.Addr+in); err != nil {
			return err
		}
		dst, off = dst[n:], off+n
	}
	return nil
}

// write places src at off. If it is the end of the message (last), its last bytes become visible last.
func (b *buffers) write(off uint64, src []byte, last bool) error {
	for len(src) > 0 {
		b.seek(off)
		if int(b.at) >= len(b.sges) {
			return memory.ErrBounds
		}
		s := &b.sges[b.at]
		in := off - b.start
		n := min(uint64(len(src)), uint64(s.Length)-in)
		var err error
		if last && n == uint64(len(src)) {
			err = b.region(b.at).WriteLast(s.Addr+in, src[:n])
		} else {
			err = b.region(b.at).Write(s.Addr+in, src[:n])
		}
		if err != nil {
			return err
		}
		src, off = src[n:], off+n
	}
	return nil
}

// scratch is where payload is gathered if it does not lie in one piece of mapped memory. It fills up
// during a Transmit and is empty at the next.
type scratch struct {
	buf  []byte // nil: nothing was gathered yet
	size int
	used int
}

func (s *scratch) init(packets int) { s.size = max(packets, 64) * MaxMTU }

func (s *scratch) reset() { s.used = 0 }

// full reports whether there is no room for another packet of the largest MTU.
func (s *scratch) full() bool { return s.size-s.used < MaxMTU }

// has reports whether there is room for a packet of n bytes.
func (s *scratch) has(n uint64) bool { return !s.full() && uint64(s.size-s.used) >= n }

func (s *scratch) take(n int) []byte {
	if s.buf == nil {
		s.buf = make([]byte, s.size)
	}
	b := s.buf[s.used : s.used+n : s.used+n]
	s.used += n
	return b
}

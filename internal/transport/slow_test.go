package transport

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/memory"
)

// owner is memory that the engine does not map: it is reached within a call or, if later is set, by copies that end
// later.
type owner struct {
	base  uint64
	bytes []byte
	later bool
}

func (o *owner) self() *owner { return o }

func (o *owner) Blocking() bool { return !o.later }

func (o *owner) Read(dst []byte, addr uint64) error {
	copy(dst, o.bytes[addr-o.base:addr-o.base+uint64(len(dst))])
	return nil
}

func (o *owner) Write(addr uint64, src []byte) error {
	copy(o.bytes[addr-o.base:addr-o.base+uint64(len(src))], src)
	return nil
}

// gatherer is an owner that takes many pieces in one call. The piece with number fail, counted over all calls, cannot
// be written.
type gatherer struct {
	owner
	calls, pieces int
	fail          int
}

func (g *gatherer) WriteAll(pieces []memory.Piece) (int, error) {
	g.calls++
	for i := range pieces {
		if g.pieces++; g.pieces == g.fail {
			return i, memory.ErrGone
		}
		_ = g.Write(pieces[i].Addr, pieces[i].Data)
	}
	return len(pieces), nil
}

// reach registers memory of the side: mapped or, in a slow program, of a random kind.
func (s *side) reach(base uint64, b []byte, access memory.Access) *memory.Region {
	kind := 0
	if s.slow {
		kind = s.rng.IntN(4)
	}
	var remote memory.Accessor
	switch kind {
	case 0:
		return s.region(base, b, access)
	case 1:
		remote = &gatherer{owner: owner{base: base, bytes: b}}
	default:
		remote = &owner{base, b, kind == 2}
	}
	r, err := s.mem.Register(memory.Region{
		PD: testPD, Base: base, Length: uint64(len(b)), Access: access, Remote: remote,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// copySome carries out some of the copies that wait for the owner, in order.
func (s *side) copySome() {
	var c [16]Copy
	for n := s.e.Copies(c[:]); n > 0; n = s.e.Copies(c[:]) {
		s.copying = append(s.copying, c[:n]...)
	}
	for len(s.copying) > 0 && s.rng.IntN(8) > 0 {
		done := carryOut(&s.copying[0])
		s.copying = s.copying[1:]
		s.e.Copied(s.e.now, []CopyResult{done})
		s.port.Wake()
	}
}

func carryOut(c *Copy) CopyResult {
	o := c.Region.Remote.(interface{ self() *owner }).self()
	at := o.bytes[c.Addr-o.base:]
	done := CopyResult{Tag: c.Tag}
	switch c.Kind {
	case memory.CopyRead:
		copy(c.Data, at)
	case memory.CopyWrite:
		copy(at, c.Data)
	case memory.CopyFetchAdd:
		done.Old = binary.NativeEndian.Uint64(at)
		binary.NativeEndian.PutUint64(at, done.Old+c.Swap)
	case memory.CopyCompareSwap:
		if done.Old = binary.NativeEndian.Uint64(at); done.Old == c.Compare {
			binary.NativeEndian.PutUint64(at, c.Swap)
		}
	}
	return done
}

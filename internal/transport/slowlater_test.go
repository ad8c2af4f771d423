package transport

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
)

// sticky is memory that is reached within a call until one call finds that it would take long; from then on, until its
// copies have ended, by copies that end later. No call may be the one that waits.
type sticky struct {
	owner
	after int // calls until it is slow
}

func (s *sticky) ready() bool {
	s.after--
	s.later = s.later || s.after < 0
	return !s.later
}

func (s *sticky) Read(dst []byte, addr uint64) error {
	if !s.ready() {
		return memory.ErrBlock
	}
	return s.owner.Read(dst, addr)
}

func (s *sticky) Write(addr uint64, src []byte) error {
	if !s.ready() {
		return memory.ErrBlock
	}
	return s.owner.Write(addr, src)
}

// gatheringSticky takes many pieces in one call.
type gatheringSticky struct{ sticky }

func (s *gatheringSticky) WriteAll(pieces []memory.Piece) (int, error) {
	for i := range pieces {
		if err := s.Write(pieces[i].Addr, pieces[i].Data); err != nil {
			return i, err
		}
	}
	return len(pieces), nil
}

// TestMemoryBecomesSlow: memory that turns out to be slow in the middle of a message, at any call, on the wire and on the
// local path, is reached by copies that end later from there on, and the message arrives whole.
func TestMemoryBecomesSlow(t *testing.T) {
	for _, c := range []struct {
		name  string
		slowA bool // the requester's memory, else the responder's
		op    ring.WROp
	}{
		{"target of a write", false, ring.OpWrite}, {"source of a read", false, ring.OpRead}, {"operand", false, ring.OpFetchAdd},
		{"receive", false, ring.OpSend}, {"source of a write", true, ring.OpWrite}, {"sink of a read", true, ring.OpRead},
		{"sink of an atomic", true, ring.OpFetchAdd},
	} {
		for _, local := range []bool{false, true} {
			for _, gathers := range []bool{false, true} {
				for after := range 12 {
					becomesSlow(t, c.name, c.slowA, c.op, local, gathers, after)
				}
			}
		}
	}
}

func becomesSlow(t *testing.T, name string, slowA bool, op ring.WROp, local, gathers bool, after int) {
	t.Helper()
	n, a, b := newPair(t, uint64(after), command.RC)
	connect(a, b, defaultConnection())
	mine, theirs := pattern(regionSize, 1), pattern(regionSize, 9)
	for x, mem := range map[*end][]byte{a: mine, b: theirs} {
		r := memory.Region{PD: testPD, Base: regionAt, Length: regionSize, Access: allowAll, Bytes: mem}
		if (x == a) == slowA {
			s := sticky{owner{regionAt, mem, false}, after}
			r.Bytes, r.Remote = nil, memory.Accessor(&s)
			if gathers {
				r.Remote = &gatheringSticky{s}
			}
		}
		if _, err := x.mem.Register(r); err != nil {
			t.Fatal(err)
		}
	}
	if local {
		if err := a.e.Join(0, a.q, b.q); err != nil {
			t.Fatal(err)
		}
	}
	size := 9000
	if op == ring.OpFetchAdd {
		size = 8
	}
	b.give(size, 2)
	want := bytes.Clone(mine[:size])
	if op == ring.OpRead {
		want = bytes.Clone(theirs[:size])
	}
	for range 2 {
		a.do(op, size)
	}
	for limit := n.Now() + 4*second; len(a.comps) < 2 && n.Now() < limit; {
		n.Run(n.Now()+second/1000, nil)
		carryOutAll(a, n)
		carryOutAll(b, n)
	}
	if len(a.comps) != 2 || a.comps[0].Status != ring.Success || a.comps[1].Status != ring.Success {
		t.Fatalf("%s, local %v, gathers %v, after %d calls: completions %+v, want two successes", name, local, gathers, after, a.comps)
	}
	if op != ring.OpFetchAdd && (!bytes.Equal(mine[:size], want) || !bytes.Equal(theirs[:size], want)) {
		t.Errorf("%s, local %v, gathers %v, after %d calls: the data differs", name, local, gathers, after)
	}
}

// carryOutAll carries out the copies that wait for an owner.
func carryOutAll(x *end, n *sim.Network) {
	var c [16]Copy
	for k := x.e.Copies(c[:]); k > 0; k = x.e.Copies(c[:]) {
		for i := range c[:k] {
			x.e.Copied(n.Now(), []CopyResult{carryOut(&c[i])})
		}
		x.port.Wake()
	}
}

// TestMemoryBecomesSlowAndFails: if such copies then fail, the request ends as if the memory were gone, also on a pair
// that was on the local path.
func TestMemoryBecomesSlowAndFails(t *testing.T) {
	for _, local := range []bool{false, true} {
		n, a, b := newPair(t, 1, command.RC)
		p := defaultConnection()
		p.timeout = 16
		connect(a, b, p)
		a.region(regionAt, make([]byte, regionSize), allowAll)
		if _, err := b.mem.Register(memory.Region{PD: testPD, Base: regionAt, Length: regionSize, Access: allowAll,
			Remote: &gatheringSticky{sticky{owner{regionAt, make([]byte, regionSize), false}, 0}}}); err != nil {
			t.Fatal(err)
		}
		if local {
			if err := a.e.Join(0, a.q, b.q); err != nil {
				t.Fatal(err)
			}
		}
		a.do(ring.OpWrite, 100)
		for i := range 20 {
			n.Run(n.Now()+second/20, nil)
			if len(a.comps) > 0 && i < 15 {
				t.Fatalf("local %v: completed before its copy: %+v", local, a.comps)
			}
			if i == 15 {
				b.failCopies(n)
			}
		}
		if len(a.comps) != 1 || a.comps[0].Status != ring.RemoteOperation {
			t.Errorf("local %v: completions %+v, want a remote operation error", local, a.comps)
		}
	}
}

package packet

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/softvpi/softvpi/wire/eth"
)

// verdict runs a gate's program over a frame.
func verdict(t *testing.T, program *ebpf.Program, b []byte) int32 {
	t.Helper()
	v, err := program.Run(&ebpf.RunOptions{Data: b})
	if err != nil {
		t.Fatal(err)
	}
	return int32(v)
}

// gateOf loads the program of a rule, which drops.
func gateOf(t *testing.T, r Rule) (*gate, *ebpf.Program) {
	t.Helper()
	g := new(gate)
	t.Cleanup(g.close)
	program, err := g.load(r)
	if program == nil && len(g.opened) == 0 {
		t.Skipf("this system makes no maps: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.set(true)
	return g, program
}

// The program drops what the ring has whole, counts it, and lets everything else go on to other programs: also what is cut off,
// and all while it is shut.
func TestGateDropsWhatTheRingHas(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: loads programs")
	}
	for _, c := range filterCases() {
		if c.ifi != theInterface {
			continue // it is at the one interface alone
		}
		b, r := c.of()
		switch c.kind { // the system tells it from the address of the loopback interface
		case 0:
			copy(b, make([]byte, 6))
		case 1:
			copy(b, "\xff\xff\xff\xff\xff\xff")
		}
		g, program := gateOf(t, r)
		want, drops := int32(tcxNext), uint64(0)
		if c.ring == whole {
			want, drops = tcxDrop, 1
		}
		b = b[:min(len(b), 1024)] // the system tries it with a page at the most
		if got := verdict(t, program, b); got != want || g.dropped() != drops {
			t.Errorf("%s: the program says %d and counts %d, want %d and %d", c.name, got, g.dropped(), want, drops)
		}
		for n := r.headers() - eth.UDPLen; n < r.headers(); n++ { // the system runs none over less
			if got := verdict(t, program, b[:n:n]); got != tcxNext {
				t.Errorf("%s: the program says %d to its first %d bytes", c.name, got, n)
			}
		}
		if g.set(false); verdict(t, program, b) != tcxNext {
			t.Errorf("%s: the program drops while it is shut", c.name)
		}
	}
}

// Gates are no filters of the user's, neither the Port's own nor others', and go with their Port.
func TestGatesAreNoFilters(t *testing.T) {
	s, lo := ownSystem(t)
	r := Rule{Addr: v4b, Port: 4791, Interface: lo}
	first, err := openGate(r)
	if err != nil {
		t.Skipf("this system attaches no programs: %v", err)
	}
	r.Port++
	second, err := openGate(r)
	if err != nil {
		t.Fatal(err)
	}
	defer second.close()
	if s.filtersIngress(r.Interface, s.ask, first.own()) || s.filtersIngress(r.Interface, s.ask, 0) {
		t.Error("gates are taken for filters")
	}
	first.close()
	first.close() // does nothing
	if isGate(first.own()) || !isGate(second.own()) {
		t.Errorf("after the end of the first: first %v, second %v", isGate(first.own()), isGate(second.own()))
	}
}

// A Port without a gate is none the worse.
func TestNoGate(t *testing.T) {
	var g *gate
	g.set(true)
	if g.dropped() != 0 || g.own() != 0 {
		t.Error("something was dropped")
	}
	g.close()
}

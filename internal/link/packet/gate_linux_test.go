package packet

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/bed/namespace"
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
	g.set(copyDrops)
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
		if g.set(shut); verdict(t, program, b) != tcxNext {
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
	g.set(copyDrops)
	if g.dropped() != 0 || g.own() != 0 {
		t.Error("something was dropped")
	}
	g.close()
}

// What the program takes waits in the order in which it came, whole or as a mark, and while there is no room for more it is
// lost; who is about to sleep is woken by the next one that goes on.
func TestGateKeepsWhatItTakes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: loads programs")
	}
	r := Rule{Addr: v4b, Port: 4791, Interface: theInterface}
	g, program := gateOf(t, r)
	give := func(n int, want int32) {
		t.Helper()
		b := framed(v4a, v4b, n)
		copy(b, make([]byte, 6))
		if got := verdict(t, program, b); got != want {
			t.Fatalf("the program says %d to %d bytes, want %d", got, n, want)
		}
	}
	took := func(n int) {
		t.Helper()
		b, segment := g.peek()
		d, ok := parse(b, v4b, 4791)
		if !ok || d.length != n || (d.data == nil) != (n > MostPayload) || segment != 0 {
			t.Fatalf("%d bytes: %+v, %v, segment %d", n, d, ok, segment)
		}
		g.release()
	}
	for range 3 * slots / 2 { // around the end
		give(20, tcxDrop)
		give(600, tcxNext)
		waiting := 0
		g.waiting(func([]byte) { waiting++ })
		if waiting != 2 {
			t.Fatalf("%d wait", waiting)
		}
		took(20)
		took(600)
	}
	if b, _ := g.peek(); b != nil {
		t.Error("something waits")
	}
	if !g.arm() {
		t.Error("no sleeping, though nothing waits")
	}
	give(24, tcxRedirect)
	give(28, tcxDrop)
	if g.arm() {
		t.Error("sleeping, though something waits")
	}
	took(24)
	took(28)
	give(20, tcxRedirect) // armed still
	took(20)
	before := g.dropped()
	for range slots + 5 {
		give(20, tcxDrop)
	}
	if got := g.dropped() - before; got != slots+5 {
		t.Errorf("%d dropped of %d", got, slots+5)
	}
	give(600, tcxNext)
	for range slots {
		took(20)
	}
	if b, _ := g.peek(); b != nil {
		t.Error("more wait than there is room for")
	}
	g.set(copies)
	give(20, tcxNext)
	took(20)
	g.set(shut)
	give(20, tcxNext)
	if b, _ := g.peek(); b != nil {
		t.Error("something was taken while it is shut")
	}
}

// Where somebody takes the program away, the ring receives instead of it, and early: the filter of the socket would drop what
// nobody else has.
func TestRingInPlaceOfALostGate(t *testing.T) {
	namespace.Own(t)
	a := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}
	if err := netlink.LinkAdd(a); err != nil {
		t.Skipf("this system has no veth: %v", err)
	}
	l, err := netlink.LinkByName("a")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(Config{Addr: v4b, Port: 4791, Interface: l.Attrs().Index, Firewall: true})
	if err != nil {
		t.Skip(err)
	}
	defer p.Close()
	if !p.gated() {
		t.Skip("this system attaches no programs")
	}
	if p.ring.protocol != alarmType || p.to != source(p.gate) {
		t.Error("the ring receives beside the gate")
	}
	p.followIngress()
	if !p.gated() {
		t.Error("a gate that is there counts as lost")
	}
	_ = p.gate.opened[len(p.gate.opened)-1].Close() // the link
	p.followIngress()
	if p.gated() || !p.early || p.ring.protocol != unix.ETH_P_ALL || p.to != source(p.ring) {
		t.Errorf("without a gate: gated %v, early %v, the ring has protocol %#x", p.gated(), p.early, p.ring.protocol)
	}
	if !p.Empty() || p.from != p.to {
		t.Error("what is next does not come from the ring")
	}
}

package packet

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/wire/eth"
)

// verdict runs a gate's program on a frame and returns what it decides.
func verdict(t *testing.T, program *ebpf.Program, b []byte) int32 {
	t.Helper()
	v, err := program.Run(&ebpf.RunOptions{Data: b})
	if err != nil {
		t.Fatal(err)
	}
	return int32(v)
}

// gateOf loads the program of a rule in the mode in which it copies and drops.
func gateOf(t *testing.T, r Rule) (*gate, *ebpf.Program) {
	t.Helper()
	g := new(gate)
	t.Cleanup(g.close)
	program, err := g.load(r)
	if program == nil && len(g.opened) == 0 {
		t.Skipf("this system permits no BPF maps: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.set(copyDrops)
	return g, program
}

// TestGateDropsWhatTheRingHas: the program drops and counts what the ring has whole, and passes everything else on to
// other programs, also frames that are cut off, and everything while it is shut.
func TestGateDropsWhatTheRingHas(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: loads programs")
	}
	for _, c := range filterCases() {
		if c.ifi != theInterface {
			continue // the program is attached to one interface only
		}
		b, r := c.of()
		switch c.kind { // the system derives it from the address of the loopback interface
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
		b = b[:min(len(b), 1024)] // the system tests programs with at most a page
		if got := verdict(t, program, b); got != want || g.dropped() != drops {
			t.Errorf("%s: the program says %d and counts %d, want %d and %d", c.name, got, g.dropped(), want, drops)
		}
		for n := r.headers() - eth.UDPLen; n < r.headers(); n++ { // the system refuses to test with less
			if got := verdict(t, program, b[:n:n]); got != tcxNext {
				t.Errorf("%s: the program says %d to its first %d bytes", c.name, got, n)
			}
		}
		if g.set(shut); verdict(t, program, b) != tcxNext {
			t.Errorf("%s: the program drops while it is shut", c.name)
		}
	}
}

// TestGatesAreNoFilters: gates do not count as filters of the user's, neither the Port's own nor those of other
// Ports, and are removed with their Port.
func TestGatesAreNoFilters(t *testing.T) {
	systemtest.Mark(t)
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
	if s.filtersIngress(r.Interface, s.socket(), first.own()) || s.filtersIngress(r.Interface, s.socket(), 0) {
		t.Error("gates count as filters")
	}
	first.close()
	first.close() // the second close does nothing
	if isGate(first.own()) || !isGate(second.own()) {
		t.Errorf("after the first gate was closed: first is a gate %v, second %v; want false, true", isGate(first.own()),
			isGate(second.own()))
	}
}

// TestNoGate: a Port without a gate works: setting it does nothing and no packets count as dropped.
func TestNoGate(t *testing.T) {
	var g *gate
	g.set(copyDrops)
	if g.dropped() != 0 || g.own() != 0 {
		t.Error("a missing gate dropped packets or has an id")
	}
	g.close()
}

// TestGateKeepsWhatItTakes: what the program takes waits in order, whole or as a mark, and is lost while there is no
// room. A receiver that is about to sleep is woken by the next packet.
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
		d, ok := parsed(b, v4b, 4791)
		if !ok || d.length != n || (d.data == nil) != (n > MostPayload) || segment != 0 {
			t.Fatalf("%d bytes: %+v, %v, segment %d", n, d, ok, segment)
		}
		g.release()
	}
	for range 3 * slots / 2 { // past the end of the ring
		give(20, tcxDrop)
		give(600, tcxNext)
		waiting := 0
		g.waiting(func([]byte) { waiting++ })
		if waiting != 2 {
			t.Fatalf("%d packets wait, want 2", waiting)
		}
		took(20)
		took(600)
	}
	if b, _ := g.peek(); b != nil {
		t.Error("a packet waits after all were taken")
	}
	if !g.arm() {
		t.Error("the receiver may not sleep although no packet waits")
	}
	give(24, tcxRedirect)
	give(28, tcxDrop)
	if g.arm() {
		t.Error("the receiver may sleep although a packet waits")
	}
	took(24)
	took(28)
	give(20, tcxRedirect) // still armed
	took(20)
	before := g.dropped()
	for range slots + 5 {
		give(20, tcxDrop)
	}
	if got := g.dropped() - before; got != slots+5 {
		t.Errorf("%d packets were dropped or kept, of %d given", got, slots+5)
	}
	give(600, tcxNext)
	for range slots {
		took(20)
	}
	if b, _ := g.peek(); b != nil {
		t.Error("more packets wait than there is room for")
	}
	g.set(copies)
	give(20, tcxNext)
	took(20)
	g.set(shut)
	give(20, tcxNext)
	if b, _ := g.peek(); b != nil {
		t.Error("a packet was taken while the gate is shut")
	}
}

// TestRingInPlaceOfALostGate: if somebody removes the program, the ring receives in its place, ahead of tc, because
// the socket's filter would drop packets that nobody else has.
func TestRingInPlaceOfALostGate(t *testing.T) {
	systemtest.Mark(t)
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
		t.Error("the ring receives although the gate does")
	}
	p.followIngress()
	if !p.gated() {
		t.Error("a gate in place counts as lost")
	}
	_ = p.gate.opened[len(p.gate.opened)-1].Close() // the link, which holds the program in place
	p.followIngress()
	if p.gated() || !p.early || p.ring.protocol != unix.ETH_P_ALL || p.to != source(p.ring) {
		t.Errorf("without a gate: gated %v, early %v, the ring has protocol %#x", p.gated(), p.early, p.ring.protocol)
	}
	if !p.Empty() || p.from != p.to {
		t.Error("the next packet does not come from the ring")
	}
}

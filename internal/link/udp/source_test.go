package udp

import (
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/os/openfiles"
)

// prepared returns a route from a to b with a computed source port.
func prepared(t *testing.T, a, b Link, port uint16) *frame.Route {
	t.Helper()
	r := &frame.Route{Dst: b.Status().Addr.Addr(), DstPort: b.Status().Addr.Port(), SrcPort: port}
	if err := a.Prepare(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// arrivesFrom sends a packet and fails unless it comes from the port that the route says.
func arrivesFrom(t *testing.T, a, b Link, r *frame.Route) {
	t.Helper()
	sendAll(t, a, packets(r, a.Capabilities(), payloadsOf(1, 10)...))
	if p := receiveN(t, b, 1)[0]; p.In.SrcPort != r.SrcPort {
		t.Fatalf("packet came from port %d, the route says %d", p.In.SrcPort, r.SrcPort)
	}
}

// TestEveryRouteHasItsSourcePort (WinOF manual: UDP.SrcPort = (SrcPort XOR DstPort) OR 0xC000): every route is sent from
// the port computed for it, not only the first of some.
func TestEveryRouteHasItsSourcePort(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		bound := map[uint16]bool{}
		for i := range 64 {
			port := 0xc000 | uint16(i*37)
			r := prepared(t, a, b, port)
			bound[r.SrcPort] = true
			if r.SrcPort != port && a.Stats().OtherSourcePorts == 0 {
				t.Fatalf("computed port %d is sent from %d", port, r.SrcPort)
			}
			arrivesFrom(t, a, b, r)
		}
		// Somebody else may have had some of the ports.
		if n := a.Stats().OtherSourcePorts; n > 8 {
			t.Errorf("%d of 64 routes have another source port", n)
		}
		if s := a.Status(); len(s.BoundSourcePorts) != len(bound) || s.SourcePorts != fmt.Sprintf("own (%d of 1024 bound)", len(bound)) {
			t.Errorf("status %+v, want %d bound ports", s, len(bound))
		}
	})
}

// TestSourcePortsAreClosed: a port is bound as long as a route sends from it, however many do, and is then free for
// others.
func TestSourcePortsAreClosed(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		first, second := prepared(t, a, b, 0xd123), prepared(t, a, b, 0xd123)
		if first.SrcPort != second.SrcPort || socketOf(first) != socketOf(second) || len(a.Status().BoundSourcePorts) != 1 {
			t.Fatalf("two routes with one port send from %d and %d", first.SrcPort, second.SrcPort)
		}
		other := prepared(t, a, b, 0xd456)
		first.Release()
		first.Release() // once is enough
		arrivesFrom(t, a, b, second)
		second.Release()
		if s := a.Status(); !slices.Equal(s.BoundSourcePorts, []uint16{other.SrcPort}) {
			t.Errorf("%v are bound, want %d", s.BoundSourcePorts, other.SrcPort)
		}
		taken, err := net.ListenUDP("udp", &net.UDPAddr{IP: a.Status().Addr.Addr().AsSlice(), Port: int(second.SrcPort)})
		if err != nil {
			t.Fatalf("the port is still bound: %v", err)
		}
		taken.Close()
		third := prepared(t, a, b, 0xd789)
		if socketOf(third) != 1 {
			t.Errorf("the freed slot is not used again: socket %d", socketOf(third))
		}
		arrivesFrom(t, a, b, third)
		arrivesFrom(t, a, b, other)
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		other.Release() // after its link
	})
}

// TestSourcePortInUse: instead of a port that is in use a neighbouring one is used, and counted.
func TestSourcePortInUse(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		taken, err := net.ListenUDP("udp", &net.UDPAddr{IP: a.Status().Addr.Addr().AsSlice()})
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		want := uint16(taken.LocalAddr().(*net.UDPAddr).Port)
		r := prepared(t, a, b, want)
		if r.SrcPort == want || r.SrcPort < 0xc000 || socketOf(r) == 0 {
			t.Errorf("sends from %d instead of %d, want another dynamic port", r.SrcPort, want)
		}
		if n := a.Stats().OtherSourcePorts; n != 1 {
			t.Errorf("%d routes with another source port are counted, want 1", n)
		}
		arrivesFrom(t, a, b, r)
	})
}

// TestSourcePortsAreBounded: no more sockets are bound than allowed; further routes share them, and are counted.
func TestSourcePortsAreBounded(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		v.cfg.SourcePorts = 3
		a, b := v.open(t), v.open(t)
		sockets := map[uint16]int{}
		var routes []*frame.Route
		for i := range 12 {
			r := prepared(t, a, b, 0xe001+uint16(i)*16)
			sockets[socketOf(r)]++
			arrivesFrom(t, a, b, r)
			routes = append(routes, r)
		}
		if sockets[0] != 0 || len(sockets) != 3 || len(a.Status().BoundSourcePorts) != 3 || a.Stats().OtherSourcePorts < 9 {
			t.Errorf("routes per socket %v, %d have another port", sockets, a.Stats().OtherSourcePorts)
		}
		for _, r := range routes {
			r.Release()
		}
		if s := a.Status(); len(s.BoundSourcePorts) != 0 || s.SourcePorts != "own (0 of 3 bound)" {
			t.Errorf("left %v, %q", s.BoundSourcePorts, s.SourcePorts)
		}
	})
}

// TestSourcePortsTakeNoMoreThanTheirShare: beyond a quarter of the process's descriptors routes share sockets.
func TestSourcePortsTakeNoMoreThanTheirShare(t *testing.T) {
	before := allSources.Swap(openfiles.SourcePorts(openfiles.Limit()) - 2)
	defer allSources.Add(before - openfiles.SourcePorts(openfiles.Limit()) + 2)
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		for i := range 6 {
			arrivesFrom(t, a, b, prepared(t, a, b, 0xe001+uint16(i)*16))
		}
		if n := len(a.Status().BoundSourcePorts); n != 2 {
			t.Errorf("%d ports are bound, want 2", n)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSourcePortRules(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		b := v.open(t)
		all := v.open(t)
		if got := prepared(t, all, b, 0).SrcPort; got != all.Status().Addr.Port() {
			t.Errorf("a route without a source port is sent from %d", got)
		}
		v.cfg = Config{Portable: v.cfg.Portable, SourcePorts: -1}
		own := v.open(t)
		if got := prepared(t, own, b, 0xc001).SrcPort; got != own.Status().Addr.Port() || own.Stats().OtherSourcePorts != 0 {
			t.Errorf("without sockets for source ports, %d is sent from %d", 0xc001, got)
		}
	})
}

// TestArrivalsAtSourcePortsAreDropped: packets sent to a port of the pool are dropped and not answered.
func TestArrivalsAtSourcePortsAreDropped(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		r := &frame.Route{Dst: b.Status().Addr.Addr(), DstPort: b.Status().Addr.Port(), SrcPort: 0xc123}
		if err := a.Prepare(r); err != nil {
			t.Fatal(err)
		}
		back := &frame.Route{Dst: a.Status().Addr.Addr(), DstPort: r.SrcPort}
		if err := b.Prepare(back); err != nil {
			t.Fatal(err)
		}
		frames := packets(back, b.Capabilities(), payloadsOf(40, 1000)...)
		errs := make([]link.Unreachable, 4)
		for range 20 {
			sendAll(t, b, frames)
			if n := a.Errors(errs); n != 0 {
				t.Fatalf("errors: %v", errs[:n])
			}
		}
		if n := receiveSome(t, a); n != 0 {
			t.Errorf("%d packets to the source port arrived", n)
		}
		if n := b.Errors(errs); n != 0 {
			t.Errorf("errors: %v", errs[:n])
		}
	})
}

// BenchmarkSourcePort measures what a source port costs: a socket is opened and closed.
func BenchmarkSourcePort(b *testing.B) {
	a := variant{}.open(b)
	to := a.Status().Addr
	i := 0
	for b.Loop() {
		r := &frame.Route{Dst: to.Addr(), DstPort: to.Port(), SrcPort: 0xc000 + uint16(i)%8192}
		i++
		if err := a.Prepare(r); err != nil {
			b.Fatal(err)
		}
		r.Release()
	}
}

// TestRoute_PreparedByAClosedLink: a route that another link has prepared is prepared anew, so that its packets come from
// the port that it says.
func TestRoute_PreparedByAClosedLink(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		r := prepared(t, a, b, 0xc123)
		cfg, at := v.cfg, a.Status().Addr
		cfg.Addr, cfg.Port = at.Addr(), at.Port()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		arrivesFrom(t, again, b, r)
	})
}

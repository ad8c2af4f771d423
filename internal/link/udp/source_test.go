package udp

import (
	"net"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
)

// TestSourcePortPool: a route is sent from a port of the pool that its computed source port selects.
func TestSourcePortPool(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		v.cfg.SourcePorts = 4
		a, b := v.open(t), v.open(t)
		to := b.Status().Addr
		byComputed := map[uint16]uint16{}
		for i := range 64 {
			computed := 0xc000 | uint16(i*37)
			r := &frame.Route{Dst: to.Addr(), DstPort: to.Port(), SrcPort: computed}
			if err := a.Prepare(r); err != nil {
				t.Fatal(err)
			}
			if was, ok := byComputed[computed%4]; ok && was != r.SrcPort {
				t.Fatalf("computed port %d is sent from %d, others that select the same place from %d", computed, r.SrcPort, was)
			}
			byComputed[computed%4] = r.SrcPort
			sendAll(t, a, packets(r, a.Capabilities(), payloadsOf(1, 10)...))
			if p := receiveN(t, b, 1)[0]; p.in.SrcPort != r.SrcPort {
				t.Fatalf("packet came from port %d, the route says %d", p.in.SrcPort, r.SrcPort)
			}
		}
		s := a.Status()
		if len(s.BoundSourcePorts) != 4 || s.SourcePorts != "pool of 4" {
			t.Errorf("status %+v, want 4 bound ports of a pool of 4", s)
		}
	})
}

// TestSourcePortInUseIsSkipped: a port that is in use is skipped, and another one with the same place in the pool is
// used.
func TestSourcePortInUseIsSkipped(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		taken, err := net.ListenUDP("udp", &net.UDPAddr{IP: a.Status().Addr.Addr().AsSlice()})
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		want := uint16(taken.LocalAddr().(*net.UDPAddr).Port)
		r := &frame.Route{Dst: b.Status().Addr.Addr(), DstPort: b.Status().Addr.Port(), SrcPort: want}
		if err := a.Prepare(r); err != nil {
			t.Fatal(err)
		}
		if r.SrcPort == want || r.SrcPort%DefaultSourcePorts != want%DefaultSourcePorts || r.SrcPort < 0xc000 {
			t.Errorf("sends from %d instead of %d, want another port of the same place", r.SrcPort, want)
		}
		if a.Status().SkippedSourcePorts == 0 {
			t.Error("the status counts no skipped port")
		}
		sendAll(t, a, packets(r, a.Capabilities(), payloadsOf(1, 10)...))
		if p := receiveN(t, b, 1)[0]; p.in.SrcPort != r.SrcPort {
			t.Errorf("came from %d, the route says %d", p.in.SrcPort, r.SrcPort)
		}
	})
}

func TestSourcePortRules(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		b := v.open(t)
		to := b.Status().Addr
		prepare := func(l Link, port uint16) uint16 {
			r := &frame.Route{Dst: to.Addr(), DstPort: to.Port(), SrcPort: port}
			if err := l.Prepare(r); err != nil {
				t.Fatal(err)
			}
			return r.SrcPort
		}
		v.cfg.ExactSourcePorts = true
		exact := v.open(t)
		ports := []uint16{0xc001, 0xd001, 0xe001, 0xc001}
		for _, p := range ports {
			if got := prepare(exact, p); got != p {
				t.Errorf("exact %d is sent from %d", p, got)
			}
		}
		if s := exact.Status(); s.SourcePorts != "exact" || !slices.Equal(s.BoundSourcePorts, ports[:3]) {
			t.Errorf("status: %+v", s)
		}
		v.cfg = Config{Portable: v.cfg.Portable, SourcePorts: -1}
		own := v.open(t)
		if got := prepare(own, 0xc001); got != own.Status().Addr.Port() {
			t.Errorf("without a pool, %d is sent from %d", 0xc001, got)
		}
		if got := prepare(exact, 0); got != exact.Status().Addr.Port() {
			t.Errorf("a route without a source port is sent from %d", got)
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

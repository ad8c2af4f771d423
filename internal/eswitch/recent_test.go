package eswitch

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/eth"
)

// TestFollow_IsForward: with what it remembers of the frame before, a frame goes where it goes without, whatever was changed in
// between, and counts the same.
func TestFollow_IsForward(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{RedirectDHCP: rapid.Bool().Draw(t, "dhcp")}
		m := &model{functions: map[Port]Function{}, groups: map[Port][]eth.MAC{}}
		a, b := New(cfg), New(cfg)
		var r Recent
		var frame []byte
		from := Wire
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if p := rapid.SampledFrom(somePorts[1:]).Draw(t, "port"); rapid.IntRange(0, 5).Draw(t, "change") == 0 {
				f := drawFunction(t)
				f.VLAN.ID, f.VLAN.Priority = 0, 0 // tags are not the switch's here
				if a.Set(p, f) == nil {
					_ = b.Set(p, f)
					m.functions[p] = f
				}
			}
			if frame == nil || rapid.Bool().Draw(t, "another") {
				from = rapid.SampledFrom(somePorts).Draw(t, "sender")
				frame = drawFrame(t, m, from)
			}
			same(t, a, b, &r, from, frame)
		}
	})
}

// same fails unless both switches do the same with a frame.
func same(t *rapid.T, a, b *Switch, r *Recent, from Port, frame []byte) {
	list, want := a.Forward(from, frame, nil)
	if why := b.Follow(from, frame, len(frame), r); why != want {
		t.Fatalf("%s sends %x: %s, want %s", from, frame, why, want)
	}
	var to Set
	wire, only := false, Wire
	for _, d := range list {
		if wire = wire || d.To == Wire; d.To != Wire {
			to.Add(d.To)
			only = d.To
		}
	}
	if to.Len() != 1 {
		only = Wire
	}
	if want == 0 && (r.To != to || r.Wire != wire || r.Only != only) {
		t.Fatalf("%s sends %x: to %v and the wire %v, only %v; want %v, %v, %v", from, frame, r.To, r.Wire, r.Only, to, wire, only)
	}
	for _, p := range somePorts {
		x, y := a.Counters(p), b.Counters(p)
		if (x == nil) != (y == nil) || x != nil && *x != *y {
			t.Fatalf("%s sends %x: %s counts %+v, want %+v", from, frame, p, y, x)
		}
	}
}

// TestFollow_Made: what the adapter has made itself passes without spoof protection, and is no DHCP.
func TestFollow_Made(t *testing.T) {
	s := house(t, Config{RedirectDHCP: true})
	frame := bare(mac(11), mac(99), 0x8915, 1, 2, 3, 4)
	var made, other Recent
	made.Made = true
	for range 2 {
		if why := s.Follow(VF(0), frame, len(frame), &made); why != 0 || made.Only != VF(1) || made.Wire {
			t.Errorf("RoCE of the adapter's: %s, to %v", why, made.Only)
		}
	}
	if why := s.Follow(VF(0), frame, len(frame), &other); why != SourceMAC {
		t.Errorf("the same frame of a program: %s, want %s", why, SourceMAC)
	}
}

// TestInside: frames stay inside that go to a port of their VLAN, whose link is up.
func TestInside(t *testing.T) {
	s := house(t, Config{})
	for _, c := range []struct {
		to   byte
		vlan uint16
		want bool
	}{{11, 0, true}, {10, 0, false}, {99, 0, false}, {11, 10, false}, {14, 10, true}, {14, 0, false}} {
		if got := s.Inside(VF(0), mac(c.to), c.vlan); got != c.want {
			t.Errorf("to %d in VLAN %d: %v, want %v", c.to, c.vlan, got, c.want)
		}
	}
}

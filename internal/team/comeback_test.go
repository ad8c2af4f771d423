package team

import (
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/team/carrier"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestComeback_Proven: a link that comes back is used at once if there is no other, and otherwise once it has been up for a while; going
// down again begins the while anew.
func TestComeback_Proven(t *testing.T) {
	m := teamOf(t, AFT, 2, func(c *Config) { c.Members[0].Primary = true })
	at := clock.Time(carrier.Proves) * 10
	m.SetLink(at, 0, false, 0)
	m.SetLink(at, 0, true, gigabit)
	m.SetLink(at.Add(carrier.Proves/2), 0, false, 0)
	m.SetLink(at.Add(carrier.Proves/2), 0, true, gigabit)
	m.Advance(at.Add(carrier.Proves))
	if m.active != 1 {
		t.Errorf("member %d is active, want 1: the primary one has been up for half of the time", m.active)
	}
	m.SetLink(at.Add(carrier.Proves), 1, false, 0)
	if m.active != 0 {
		t.Errorf("member %d is active, want 0, the only one that is up", m.active)
	}
	m.SetLink(at.Add(carrier.Proves), 1, true, gigabit)
	if m.active != 0 {
		t.Errorf("member %d is active, want 0, the primary one", m.active)
	}
}

// TestComeback_Spread: where flows are spread, those of the members that were up stay until a link that comes back is proven, and what
// arrives there is taken at once.
func TestComeback_Spread(t *testing.T) {
	for _, kind := range []Type{SLB, RLB, ALB, SLA} {
		m := teamOf(t, kind, 2)
		m.SetLink(0, 1, false, 0)
		m.SetLink(0, 1, true, gigabit)
		by := func() (n [2]int) {
			for p := range uint16(256) {
				n[m.Send(clock.Time(carrier.Proves), sentFrom(p), 64)]++
			}
			return n
		}
		if n := by(); n[1] != 0 {
			t.Errorf("%v: %d frames leave by a link that has just come back", kind, n[1])
		}
		if !m.Receive(0, 1, sentTo(m.Own(1))) {
			t.Errorf("%v: what arrives there is not taken", kind)
		}
		if pass(m, clock.Time(carrier.Proves)); kind == ALB {
			continue // its flows stay where they are
		}
		if n := by(); n[0] == 0 || n[1] == 0 {
			t.Errorf("%v: frames leave by %v, want both", kind, n)
		}
	}
}

// TestComeback_Lingers: after a fail-back the member that was active takes for a while what peers still send to it, but not what is
// for groups, which the other member gets too; one that has failed takes nothing.
func TestComeback_Lingers(t *testing.T) {
	for _, kind := range []Type{AFT, SFT, SLB, RLB, ALB} {
		m := teamOf(t, kind, 2, func(c *Config) { c.Members[0].Primary = true })
		m.SetLink(0, 0, false, 0)
		m.SetLink(0, 0, true, gigabit)
		back := clock.Time(carrier.Proves)
		pass(m, back)
		if m.active != 0 {
			t.Fatalf("%v: member %d is active, want 0", kind, m.active)
		}
		for _, x := range []struct {
			at   clock.Time
			dst  eth.MAC
			want bool
		}{
			{back, stationMAC, true}, {back, eth.Broadcast, false}, {back.Add(carrier.Lingers - 1), stationMAC, true},
			{back.Add(carrier.Lingers), stationMAC, false},
		} {
			if got := m.Receive(x.at, 1, sentTo(x.dst)); got != x.want {
				t.Errorf("%v: a frame to %v is taken %v after the fail-back: %v, want %v", kind, x.dst, x.at.Sub(back), got, x.want)
			}
		}
		m.SetLink(back, 1, false, 0)
		if m.Receive(back, 1, sentTo(stationMAC)) {
			t.Errorf("%v: a member without a link takes a frame", kind)
		}
	}
}

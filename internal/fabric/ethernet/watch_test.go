package ethernet

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// ring is three switches, each with a station at port 0, whose port 1 leads to port 2 of the next; packets to other stations go on in
// the same direction. Every station sends to one that is so many links away.
func ring(t *testing.T, port PortConfig, links int) *load {
	l := newLoad(t)
	mac := func(i int) eth.MAC { return eth.MAC{2, 0, 0, 0, 9, byte(i % 3)} }
	for i := range 3 {
		next, last := port, port
		next.Routed, next.Peer, last.Routed = true, mac(i+1), true
		l.toSwitch(Config{MAC: mac(i)}, []PortConfig{port, next, last})
	}
	for i := range 3 {
		l.must(l.Connect(End{i, 1}, End{(i + 1) % 3, 2}))
		n := l.station(StationConfig{Wire: port}, i, 0)
		l.must(l.Switch(i).SetRoutes([]Route{
			{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Ports: []int{1}},
			{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, n}), 32), Ports: []int{0}, MAC: stationMAC(n)},
		}))
	}
	for i := range 3 {
		l.add(flow{from: byte(3 + i), to: byte(3 + (i+links)%3), priority: 3, gateway: mac(i), length: 1514, frames: 20_000})
	}
	return l
}

// watch runs until a time, and looks for deadlocks every millisecond.
func (l *load) watch(until time.Duration, found func([]Waiting)) {
	w := Watch{}
	for i := range l.nodes {
		w.Sites = append(w.Sites, l.Site(i))
	}
	for at := time.Millisecond; at <= until; at += time.Millisecond {
		l.run(at)
		if cycle := w.Look(l.now); cycle != nil {
			found(cycle)
		}
	}
}

// TestFabric_Deadlock: in a ring of three switches whose routes are cyclic, every queue ends up waiting for the next. The watch
// names the three ports and their priority, once; when one link is down for a moment, frames move again.
func TestFabric_Deadlock(t *testing.T) {
	port := PortConfig{Rate: 40e9, Delay: time.Microsecond, MTU: 1500, Trust: TrustDSCP, FlowControl: PriorityPause, Lossless: 1 << 3}
	port.Groups[3] = Group{Xoff: 10_000}
	l := ring(t, port, 2)
	want := []Waiting{{End{0, 1}, 3}, {End{1, 1}, 3}, {End{2, 1}, 3}}
	var found [][]Waiting
	var at clock.Time
	l.watch(200*time.Millisecond, func(cycle []Waiting) {
		found = append(found, slices.Clone(cycle))
		at = l.now
	})
	if len(found) != 1 || !slices.Equal(found[0], want) {
		t.Fatalf("found %v, want once %v", found, want)
	}
	before := l.flows[[2]byte{3, 3}].got
	l.run(300 * time.Millisecond)
	if got := l.flows[[2]byte{3, 3}].got; got != before {
		t.Errorf("%d frames have arrived in a deadlock that was found after %v", got-before, time.Duration(at))
	}
	storms := 0
	for i := range 3 {
		for s, ok := l.Switch(i).Storm(); ok; s, ok = l.Switch(i).Storm() {
			if s.Port == 1 && s.Priority == 3 {
				storms++
			}
		}
	}
	if storms != 3 {
		t.Errorf("%d storms are reported, want one at each switch", storms)
	}
	l.lossy = true
	for _, up := range []bool{false, true} {
		l.Switch(0).Port(1).SetUp(l.now, up)
		l.Wake(0)
	}
	l.run(301 * time.Millisecond)
	if got := l.flows[[2]byte{3, 3}].got; got <= before {
		t.Error("nothing moves after a link was down")
	}
}

// TestFabric_NoDeadlock: the same ring whose flows go one link each is never stuck, and the watch finds nothing.
func TestFabric_NoDeadlock(t *testing.T) {
	port := PortConfig{Rate: 40e9, Delay: time.Microsecond, MTU: 1500, Trust: TrustDSCP, FlowControl: PriorityPause, Lossless: 1 << 3}
	port.Groups[3] = Group{Xoff: 10_000}
	l := ring(t, port, 1)
	l.watch(20*time.Millisecond, func(cycle []Waiting) { t.Errorf("found %v", cycle) })
	l.run(time.Second)
	l.complete()
}

package ethernet

import (
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// leafSpine is leaves with stations, and spines to which each has a link, all of them routers. Frames of stations go to the leaf's
// MAC.
func leafSpine(t *testing.T, leaves, spines, stations int, port PortConfig) *load {
	l := newLoad(t)
	mac := func(n int) eth.MAC { return eth.MAC{2, 0, 0, 0, 9, byte(n)} }
	uplink := port
	uplink.Routed = true
	for i := range leaves {
		ports := make([]PortConfig, stations+spines)
		for j := range ports {
			if ports[j] = port; j >= stations {
				ports[j] = uplink
				ports[j].Peer = mac(leaves + j - stations)
			}
		}
		l.toSwitch(Config{MAC: mac(i), Seed: uint64(i)}, ports)
	}
	for i := range spines {
		ports := make([]PortConfig, leaves)
		for j := range ports {
			ports[j] = uplink
			ports[j].Peer = mac(j)
		}
		l.toSwitch(Config{MAC: mac(leaves + i), Seed: uint64(leaves + i)}, ports)
		for j := range leaves {
			l.must(l.Connect(End{j, stations + i}, End{leaves + i, j}))
		}
	}
	address := func(n int) netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), 32) }
	routes := make([][]Route, leaves+spines)
	up := make([]int, spines)
	for i := range up {
		up[i] = stations + i
	}
	for i := range leaves {
		routes[i] = append(routes[i], Route{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Ports: up})
		for j := range stations {
			n := int(l.station(StationConfig{Wire: port}, i, j))
			routes[i] = append(routes[i], Route{Prefix: address(n), Ports: []int{j}, MAC: stationMAC(byte(n))})
			for s := range spines {
				routes[leaves+s] = append(routes[leaves+s], Route{Prefix: address(n), Ports: []int{i}})
			}
		}
	}
	for i, r := range routes {
		l.must(l.Switch(i).SetRoutes(r))
	}
	return l
}

// TestSwitch_ECMP: flows between stations at different leaves spread over the spines, each of them stays on one and in order, every
// hop takes one from the hop limit, and nothing is lost; when a spine is away, the others carry its flows.
func TestSwitch_ECMP(t *testing.T) {
	const leaves, spines, stations = 4, 4, 4
	port := PortConfig{Rate: 40e9, Delay: 500 * time.Nanosecond, MTU: 1500, Trust: TrustDSCP, FlowControl: PriorityPause, Lossless: 1 << 3}
	l := leafSpine(t, leaves, spines, stations, port)
	first := leaves + spines
	n := leaves * stations
	for i := range n {
		to := byte(first + (i+stations)%n)
		for p := range uint8(4) {
			l.add(flow{from: byte(first + i), to: to, priority: p, port: uint16(0xc000 + 977*i + int(p)), length: 1000, frames: 200,
				gateway: eth.MAC{2, 0, 0, 0, 9, byte(i / stations)}})
		}
	}
	hops := map[uint8]int{}
	deliver := l.Deliver
	l.Deliver = func(now clock.Time, at End, r Ref) {
		b := l.Store.Head(r)
		hops[b[22]]++
		if eth.MAC(b) != stationMAC(byte(at.Node)) || checksum(b[14:34]) != 0 {
			t.Fatalf("% x arrives at %d", b, at.Node)
		}
		deliver(now, at, r)
	}
	l.run(100 * time.Millisecond)
	l.complete()
	if hops[61] != n*4*200 {
		t.Errorf("hop limits %v, want 61 after three hops", hops)
	}
	used := func() (frames [spines]uint64) {
		for s := range spines {
			for j := range leaves {
				for _, c := range l.Switch(leaves + s).Port(j).Counters(l.now).Priority {
					frames[s] += c.InFrames
				}
			}
		}
		return frames
	}
	before := used()
	for s, frames := range before {
		if frames < 64*200/spines/2 || frames > 64*200/spines*2 {
			t.Errorf("spine %d has carried %d of %d frames", s, frames, 64*200)
		}
	}
	for i := range leaves {
		l.Switch(i).Port(stations).SetUp(l.now, false)
		l.Wake(i)
	}
	for _, f := range l.sorted() {
		f.frames += 200
	}
	l.run(200 * time.Millisecond)
	l.complete()
	if after := used(); after[0] != before[0] || after[1]+after[2]+after[3] != before[1]+before[2]+before[3]+64*200 {
		t.Errorf("without the first spine: %v, before %v", after, before)
	}
}

// TestSwitch_HopLimit: a packet that has been routed often enough ends, and a loop of routes with it.
func TestSwitch_HopLimit(t *testing.T) {
	r := newRig(t, Config{}, PortConfig{Routed: true, Peer: stationMAC(8)}, PortConfig{Routed: true, Peer: stationMAC(9)})
	gateway := DefaultMAC
	if err := r.sw.SetRoutes([]Route{{Prefix: netip.MustParsePrefix("10.0.0.0/24"), Ports: []int{1}}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		x    packet
		want int
	}{
		{packet{from: 1, to: 2, gateway: gateway, hops: 2}, 1}, {packet{from: 1, to: 2, gateway: gateway, hops: 1}, 0},
		{packet{from: 1, to: 2}, 0},
	} {
		r.receive(0, c.x)
		r.drive(r.now + microsecond)
		got := r.left(1)
		if len(got) != c.want {
			t.Fatalf("%d frames leave, want %d", len(got), c.want)
		}
		for _, b := range got {
			if b[22] != 1 || checksum(b[14:34]) != 0 || eth.MAC(b) != stationMAC(9) || eth.MAC(b[6:]) != gateway {
				t.Errorf("% x leaves", b)
			}
		}
	}
	if d := r.sw.Port(0).Counters(r.now).Dropped; d.HopLimit != 1 || d.NoRoute != 1 {
		t.Errorf("%+v", d)
	}
	r.idle()
}

// TestSwitch_SetRoutes: the longest prefix applies, of either family, and what cannot be a route is an error.
func TestSwitch_SetRoutes(t *testing.T) {
	r := newRig(t, Config{}, make([]PortConfig, 4)...)
	prefix := netip.MustParsePrefix
	mac := stationMAC(1)
	l := []Route{
		{prefix("0.0.0.0/0"), []int{0}, mac}, {prefix("10.0.0.0/8"), []int{1}, mac}, {prefix("10.0.0.2/32"), []int{2}, mac},
		{prefix("2001:db8::/32"), []int{3}, mac},
	}
	if err := r.sw.SetRoutes(l); err != nil {
		t.Fatal(err)
	}
	for a, want := range map[string]uint64{"192.0.2.1": 1, "10.0.0.3": 2, "10.0.0.2": 4, "2001:db8::1": 8, "2001:db9::1": 0} {
		got := hop{}
		if h := r.sw.routes.find(netip.MustParseAddr(a)); h != nil {
			got = *h
		}
		if got.ports != want {
			t.Errorf("%s leaves by ports %b, want %b", a, got.ports, want)
		}
	}
	for want, bad := range map[string]Route{
		"routes[0].Prefix": {netip.Prefix{}, []int{0}, mac}, "routes[0].Ports": {prefix("10.0.0.0/8"), []int{4}, mac},
		"routes[0].MAC": {prefix("10.0.0.0/8"), []int{0}, eth.MAC{}},
	} {
		if err := r.sw.SetRoutes([]Route{bad}); field(err) != want {
			t.Errorf("%v, want an error about %s", err, want)
		}
	}
	if err := r.sw.SetRoutes([]Route{l[0], l[0]}); field(err) != "routes[1].Prefix" {
		t.Error(err)
	}
}

// TestSwitch_Bundle: the flows to a host behind a bundle spread over its ports, each on one; what comes from the host by any of them
// is learned at the bundle and never goes back; a port that is down leaves its flows to the others.
func TestSwitch_Bundle(t *testing.T) {
	r := &rig{t: t}
	var err error
	if r.sw, err = New(&r.store, Config{}, make([]PortConfig, 5), []int{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	r.receive(2, packet{from: 2, to: 9}) // floods to 0 and 4 alone
	r.drive(microsecond)
	for port, want := range []int{1, 0, 0, 0, 1} {
		if got := len(r.left(port)); got != want {
			t.Errorf("port %d: %d frames, want %d", port, got, want)
		}
	}
	count := func() (n [5]int) {
		for i := range uint16(300) {
			for range 2 {
				r.receive(0, packet{from: 1, to: 2, port: i})
			}
		}
		r.drive(r.now + 100*microsecond)
		where := map[uint16]int{}
		for port := range n {
			for _, b := range r.left(port) {
				flow := uint16(b[34])<<8 | uint16(b[35])
				if at, there := where[flow]; there && at != port {
					t.Errorf("flow %d leaves by ports %d and %d", flow, at, port)
				}
				where[flow] = port
				n[port]++
			}
		}
		return n
	}
	n := count()
	for _, port := range []int{1, 2, 3} {
		if n[port] < 120 || n[port] > 280 {
			t.Errorf("%v frames leave, want 200 by each of three ports", n)
		}
	}
	r.sw.Port(1).SetUp(r.now, false)
	if n = count(); n[1] != 0 || n[2]+n[3] != 600 {
		t.Errorf("%v frames leave while a port is down", n)
	}
	r.idle()
}

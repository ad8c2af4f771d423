package ipoib

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
	"pgregory.net/rapid"
)

// TestNobodyAnswers: after three solicitations, a second apart, a neighbour is given up, and packets that waited for
// it are counted.
func TestNobodyAnswers(t *testing.T) {
	for _, addr := range []netip.Addr{netip.MustParseAddr("10.0.0.99"), netip.MustParseAddr("fd00::99")} {
		w := newNetwork(t, 2, subnet.Config{}, defaults)
		w.run(time.Second)
		h := w.hosts[0]
		src := v4(0)
		if addr.Is6() {
			src = v6(0)
		}
		h.sent = nil
		w.send(h, udp(src, addr, 1))
		if _, ok := h.Resolve(w.now, addr); ok {
			t.Fatal("an unknown address was resolved at once")
		}
		w.run(2900 * time.Millisecond)
		if addr.Is4() && len(h.sent) != 3 || len(h.resolved) != 0 {
			t.Errorf("%v: %d sent, resolved %v", addr, len(h.sent), h.resolved)
		}
		w.run(200 * time.Millisecond)
		if len(h.resolved) != 1 || !errors.Is(h.resolved[0].Err, ErrUnreachable) || len(h.neighbours) != 0 ||
			h.Counters().DroppedNoRoute == 0 {
			t.Errorf("%v: resolved %v, %d neighbours", addr, h.resolved, len(h.neighbours))
		}
	}
}

// TestResolve: Resolve returns the GID and path of an address at once if they are known, else by a later action.
func TestResolve(t *testing.T) {
	for _, paths := range []bool{false, true} {
		w := newNetwork(t, 3, subnet.Config{}, func(int) Config { return Config{QueryPaths: paths} })
		w.run(time.Second)
		h := w.hosts[0]
		for n := 1; n < 3; n++ {
			for _, addr := range []netip.Addr{v4(n), v6(n)} {
				h.resolved = nil
				if _, ok := h.Resolve(w.now, addr); ok {
					t.Fatal("an address was known before it was asked for")
				}
				w.run(500 * time.Millisecond)
				want := w.port(w.hosts[n])
				if len(h.resolved) != 1 || h.resolved[0].Err != nil || h.resolved[0].Neighbor.Address.GID != want.GID ||
					h.resolved[0].Neighbor.Path.LID != want.LID {
					t.Fatalf("%v is resolved as %+v, want the other host's GID and LID", addr, h.resolved)
				}
				if got, ok := h.Resolve(w.now, addr); !ok || got != h.resolved[0].Neighbor {
					t.Errorf("%v again: %+v, %v", addr, got, ok)
				}
			}
		}
		if got, ok := h.Resolve(w.now, v4(0)); !ok || got.Path.LID != w.port(h).LID || got.Address != h.Address() {
			t.Errorf("its own address: %+v, %v", got, ok)
		}
	}
	i, _ := New(Config{}, func() uint64 { return 1 })
	i.Resolve(0, v4(1))
	if a, ok := i.Take(); !ok || !errors.Is(a.(Resolved).Err, ErrDown) {
		t.Errorf("a disconnected interface says %v", a)
	}
}

// TestNeighbourIsProbed: a neighbour in use that has not been heard of for a while is probed by unicast while traffic
// continues. One that does not answer is looked for again, and one that is not used is forgotten (RFC 4861 7.3).
func TestNeighbourIsProbed(t *testing.T) {
	w := newNetwork(t, 2, subnet.Config{}, defaults)
	w.run(time.Second)
	a := w.hosts[0]
	w.send(a, udp(v4(0), v4(1), 1))
	w.run(time.Minute)
	a.sent = nil
	w.send(a, udp(v4(0), v4(1), 1))
	if len(w.hosts[1].got) == 0 || a.neighbours[v4(1)].state != probing {
		t.Fatalf("the neighbour is in state %d, want probing", a.neighbours[v4(1)].state)
	}
	w.run(time.Millisecond)
	if len(a.sent) != 1 || a.sent[0].To.QPN != w.hosts[1].qpn || a.neighbours[v4(1)].state != known {
		t.Fatalf("sent %+v, want one probe by unicast", a.sent)
	}
	w.lose = func() bool { return true }
	for range 100 {
		w.send(a, udp(v4(0), v4(1), 1))
		w.run(time.Second)
	}
	if n := a.neighbours[v4(1)]; n != nil && n.ready() {
		t.Error("a neighbour that does not answer still counts as reachable")
	}
	w.lose = func() bool { return false }
	w.run(5 * time.Second)
	w.send(a, udp(v4(0), v4(1), 1))
	w.run(time.Second)
	if n := a.neighbours[v4(1)]; n == nil || n.state != known {
		t.Error("the neighbour was not found again")
	}
	w.run(neighbourIdle + 2*time.Minute)
	if len(a.neighbours) != 0 {
		t.Error("a neighbour that is not used was not forgotten")
	}
}

// TestAddressMoves: an address that moves to another port is announced, and neighbours send there (RFC 5227 3, RFC
// 4861 7.2.6).
func TestAddressMoves(t *testing.T) {
	w := newNetwork(t, 3, subnet.Config{}, defaults)
	w.run(time.Second)
	for _, c := range []struct{ from, moving netip.Addr }{{v4(0), netip.MustParseAddr("10.0.0.50")},
		{v6(0), netip.MustParseAddr("fd00::50")}} {
		bits := 24
		if c.moving.Is6() {
			bits = 64
		}
		w.hosts[1].SetAddresses(w.now, []netip.Prefix{netip.PrefixFrom(c.moving, bits)})
		w.send(w.hosts[0], udp(c.from, c.moving, 1))
		w.run(time.Second)
		w.hosts[1].SetAddresses(w.now, nil)
		w.hosts[2].SetAddresses(w.now, []netip.Prefix{netip.PrefixFrom(c.moving, bits)})
		w.run(time.Second)
		w.hosts[2].got = nil
		w.send(w.hosts[0], udp(c.from, c.moving, 1))
		w.run(time.Second)
		if len(w.hosts[2].got) != 1 {
			t.Errorf("%v: %d packets followed", c.moving, len(w.hosts[2].got))
		}
	}
}

// TestLocalEndpointsAge: an endpoint behind the interface is learned from what it sends, answered for while it is
// used, and removed after LocalEndpointMaxAge runs without use, LocalEndpointMonitorInterval apart. The interface's
// own addresses stay.
func TestLocalEndpointsAge(t *testing.T) {
	w := newNetwork(t, 2, subnet.Config{}, func(int) Config { return Config{LocalMaxAge: 3, LocalInterval: 10 * time.Second} })
	w.run(time.Second)
	h, guest := w.hosts[0], netip.MustParseAddr("10.0.0.77")
	w.send(h, udp(guest, v4(1), 1))
	w.send(h, udp(netip.MustParseAddr("192.0.2.1"), v4(1), 1)) // of another link: routed, not behind the interface
	w.run(20 * time.Second)
	if h.local[guest] == nil || len(h.local) != 3 {
		t.Fatalf("%d endpoints, want 3 with the guest", len(h.local))
	}
	w.send(w.hosts[1], udp(v4(1), guest, 1)) // a packet for it: its age starts again
	w.run(20 * time.Second)
	if h.local[guest] == nil || len(h.got) != 1 {
		t.Fatal("an endpoint that is used was removed")
	}
	w.run(20 * time.Second)
	if h.local[guest] != nil || h.local[v4(0)] == nil || h.local[v6(0)] == nil {
		t.Error("after three runs without use it should be gone, and the configured ones not")
	}
}

// TestRoutes: packets for other links go to the gateway of the longest matching route.
func TestRoutes(t *testing.T) {
	w := newNetwork(t, 3, subnet.Config{}, defaults)
	w.run(time.Second)
	h := w.hosts[0]
	h.SetRoutes([]Route{{netip.MustParsePrefix("0.0.0.0/0"), v4(1)}, {netip.MustParsePrefix("192.0.2.0/24"), v4(2)},
		{netip.MustParsePrefix("::/0"), v6(2)}})
	for _, c := range []struct {
		dst string
		via int
	}{{"198.51.100.1", 1}, {"192.0.2.9", 2}, {"10.0.0.2", 1}, {"10.0.0.3", 2}, {"2001:db8::1", 2}} {
		for _, o := range w.hosts {
			o.got = nil
		}
		src, dst := v4(0), netip.MustParseAddr(c.dst)
		if dst.Is6() {
			src = v6(0)
		}
		w.send(h, udp(src, dst, 1))
		w.run(time.Second)
		if len(w.hosts[c.via].got) != 1 || len(w.hosts[3-c.via].got) != 0 {
			t.Errorf("%s: host 1 got %d, host 2 %d", c.dst, len(w.hosts[1].got), len(w.hosts[2].got))
		}
	}
}

// TestBroadcast: the directed broadcast address of the interface's prefix and the limited one reach all hosts.
func TestBroadcast(t *testing.T) {
	w := newNetwork(t, 3, subnet.Config{}, defaults)
	w.run(time.Second)
	for _, dst := range []string{"10.0.0.255", "255.255.255.255"} {
		w.send(w.hosts[0], udp(v4(0), netip.MustParseAddr(dst), 1))
	}
	w.run(time.Second)
	if a, b := len(w.hosts[1].got), len(w.hosts[2].got); a != 2 || b != 2 {
		t.Errorf("the other hosts got %d and %d packets, want 2 each", a, b)
	}
}

// TestFloods: floods of neighbours that do not exist, and of answers that were not asked for, stay within the tables'
// bounds.
func TestFloods(t *testing.T) {
	i := standing(t)
	for n := range 3 * maxNeighbours {
		now := clock.Time(n)
		i.Send(now, udp(v4(0), netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}), 1))
		a := arp{Operation: eth.ARPRequest, Sender: Address{QPN: 5, GID: ib.GID{0xfd, 14: byte(n >> 8), 15: byte(n)}},
			SenderIP: netip.AddrFrom4([4]byte{10, 2, byte(n >> 8), byte(n)}), TargetIP: v4(0)}
		i.Receive(now, &Arrival{SLID: 9, SrcQP: 5, Data: a.Append(appendHeader(nil, eth.TypeARP))})
		for _, ok := i.Take(); ok; _, ok = i.Take() {
		}
	}
	if len(i.neighbours) > maxNeighbours || len(i.queries) > maxNeighbours+16 || len(i.local) > 2 {
		t.Errorf("%d neighbours, %d requests, %d endpoints", len(i.neighbours), len(i.queries), len(i.local))
	}
}

// TestSendDoesNotAllocate: sending and receiving a packet of a known neighbour allocates nothing.
func TestSendDoesNotAllocate(t *testing.T) {
	i := standing(t)
	i.Resolve(0, v4(1))
	i.learn(0, v4(1), two, &Arrival{SLID: 9, SrcQP: two.QPN}, true, true)
	grant(i, nil)
	p := udp(v4(0), v4(1), 1000)
	in := Arrival{SLID: 9, SrcQP: two.QPN, Data: append(appendHeader(nil, eth.TypeIPv4), udp(v4(1), v4(0), 1000)...)}
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := i.Send(1, p); !ok {
			t.Fatal("the packet was not sent at once")
		}
		if i.Receive(1, &in) == nil {
			t.Fatal("the packet was not received")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestPacketsArriveAfterTrouble: whatever happens to the network, packets arrive only at the host they are for, and
// once it works again they all do.
func TestPacketsArriveAfterTrouble(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paths := rapid.Bool().Draw(t, "query paths")
		w := newNetwork(t, 3, subnet.Config{}, func(int) Config { return Config{QueryPaths: paths} })
		lossy, seed := 0, uint64(1)
		w.lose = func() bool {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33%100) < lossy
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			h := w.hosts[rapid.IntRange(0, 2).Draw(t, "host")]
			switch rapid.SampledFrom([]string{"send", "loss", "deaf", "down", "up", "reregister", "time"}).Draw(t, "step") {
			case "send":
				n := rapid.IntRange(0, 2).Draw(t, "to")
				w.send(h, udp(v4(int(h.qpn-testQPN)), v4(n), n))
			case "loss":
				lossy = rapid.SampledFrom([]int{0, 30, 100}).Draw(t, "loss")
			case "deaf":
				w.deaf = !w.deaf
			case "down":
				p := w.port(h)
				p.Active = false
				h.SetPort(w.now, p)
			case "up":
				h.SetPort(w.now, w.port(h))
			case "reregister":
				h.reregister++
				h.SetPort(w.now, w.port(h))
			case "time":
				w.run(time.Duration(rapid.IntRange(1, 200).Draw(t, "seconds")) * time.Second)
			}
			w.run(time.Millisecond)
		}
		lossy, w.deaf = 0, false
		w.ports()
		w.run(time.Minute)
		for n, h := range w.hosts {
			for _, p := range h.got {
				if d := eth.IPv4(p).Dst(); d != v4(n) {
					t.Fatalf("host %d got a packet for %v", n, d)
				}
			}
			h.got = nil
		}
		for n, h := range w.hosts {
			if h.State() != Up {
				t.Fatalf("host %d is %v", n, h.State())
			}
			for m := range w.hosts {
				if m != n {
					w.send(h, udp(v4(n), v4(m), 1))
				}
			}
		}
		w.run(5 * time.Second)
		for n, h := range w.hosts {
			if len(h.got) != 2 {
				t.Fatalf("host %d got %d packets of 2", n, len(h.got))
			}
		}
	})
}

// TestUnknownProtocol: packets of a protocol that IPoIB does not carry are dropped and counted, and reported at most
// once a minute, because anybody may send them (WinOF 5.50, 3 Bug Fixes, 676863).
func TestUnknownProtocol(t *testing.T) {
	i := standing(t)
	at := func(now clock.Time) (reports int) {
		in := Arrival{SLID: 9, SrcQP: 5, Data: append(appendHeader(nil, 0x88cc), 1, 2, 3)}
		if p := i.Receive(now, &in); p != nil {
			t.Fatalf("a packet of an unknown protocol is delivered: %x", p)
		}
		for a, ok := i.Take(); ok; a, ok = i.Take() {
			if e, is := a.(Event); is && e.Kind == UnknownProtocol && e.Protocol == 0x88cc {
				reports++
			}
		}
		return reports
	}
	start := clock.Time(time.Second)
	if n := at(start); n != 1 {
		t.Errorf("%d reports of the first packet, want 1", n)
	}
	if n := at(start.Add(unknownInterval - 1)); n != 0 {
		t.Errorf("%d reports within the interval, want none", n)
	}
	if n := at(start.Add(unknownInterval)); n != 1 {
		t.Errorf("%d reports after the interval, want 1", n)
	}
	if c := i.Counters(); c.UnknownProtocol != 3 {
		t.Errorf("%d packets counted, want 3", c.UnknownProtocol)
	}
}

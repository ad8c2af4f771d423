package overlay

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// TestDirectory: a function finds those of its subnet at their MACs, and by the router whom the routing domain has a route to; two
// subnets have the same addresses.
func TestDirectory(t *testing.T) {
	x := tables(hostA, tunnel.VXLAN)
	d := NewDirectory(&x)
	for _, c := range []struct {
		subnet uint32
		to     string
		want   eth.MAC
	}{
		{red, "10.0.0.21", mac(21)}, {blue, "10.0.0.21", mac(22)}, {red, "fd00::21", mac(21)}, {red, "10.0.0.1", Router},
		{red, "10.0.1.23", Router}, {green, "198.51.100.1", Router}, {green, "10.0.1.23", mac(23)},
		{red, "10.0.0.99", eth.MAC{}}, {blue, "10.0.1.23", eth.MAC{}}, {blue, "fd00::21", eth.MAC{}}, {5009, "10.0.0.21", eth.MAC{}},
	} {
		if got, known := d.Find(c.subnet, addr(c.to)); got != c.want || known != (c.want != eth.MAC{}) {
			t.Errorf("%s in %d is at %v, %v, want %v", c.to, c.subnet, got, known, c.want)
		}
	}
	if got := d.Addresses(red, mac(21)); !slices.Equal(got, []netip.Addr{addr("10.0.0.21"), addr("fd00::21")}) {
		t.Errorf("one has %v", got)
	}
	if got := d.Addresses(blue, mac(21)); len(got) != 0 {
		t.Errorf("in another subnet it has %v", got)
	}
	if _, known := new(Directory).Find(red, addr("10.0.0.21")); known {
		t.Error("an empty one knows somebody")
	}
}

// TestAnswerFor: a question of another host for an address of a function that sees none is answered by the tunnel, to that host and who
// asks there; one for another address, of another subnet or to another adapter is not.
func TestAnswerFor(t *testing.T) {
	h := newHost(t, tunnel.VXLAN, true)
	h.AnswerFor(redA, []netip.Addr{addr("10.0.0.11"), addr("fd00::11")})
	h.AnswerFor(99, nil)
	arp := func(dst eth.MAC, target string) []byte {
		q := eth.ARP{Operation: eth.ARPRequest, SenderMAC: mac(21), SenderIP: addr("10.0.0.21"), TargetIP: addr(target)}
		return q.Append((&eth.Ethernet{Dst: dst, Src: mac(21), Type: eth.TypeARP}).Append(nil))
	}
	nd := func(from, target string) []byte {
		group := eth.SolicitedNode(addr(target))
		dst, _ := eth.MulticastMAC(group)
		q := eth.Discovery{Target: addr(target)}
		return q.AppendPacket((&eth.Ethernet{Dst: dst, Src: mac(21), Type: eth.TypeIPv6}).Append(nil), addr(from), group)
	}
	announced := eth.ARP{Operation: eth.ARPRequest, SenderMAC: mac(21), SenderIP: addr("10.0.0.11"), TargetIP: addr("10.0.0.11")}
	for _, c := range []struct {
		what   string
		subnet uint32
		ask    []byte
		answer bool
	}{
		{"everybody", red, arp(eth.Broadcast, "10.0.0.11"), true},
		{"it alone", red, arp(mac(11), "10.0.0.11"), true},
		{"neighbour discovery", red, nd("fd00::21", "fd00::11"), true},
		{"one that wants the address", red, nd("::", "fd00::11"), true},
		{"another adapter", red, arp(mac(12), "10.0.0.11"), false},
		{"an address that answers itself", red, arp(eth.Broadcast, "10.0.0.12"), false},
		{"another subnet", blue, arp(eth.Broadcast, "10.0.0.11"), false},
		{"an announcement", red, announced.Append((&eth.Ethernet{Dst: eth.Broadcast, Src: mac(21), Type: eth.TypeARP}).Append(nil)), false},
		{"neighbour discovery for another", red, nd("fd00::21", "fd00::12"), false},
	} {
		before := h.Counters().Answered
		a := h.Arrive(0, tunnelled(tunnel.Header{Kind: tunnel.VXLAN, ID: c.subnet}, c.ask, nil), false)
		if a.Frame == nil {
			t.Errorf("%s: the question itself is lost", c.what)
		}
		out := h.drain()
		if (len(out) == 1) != c.answer || h.Counters().Answered-before != uint64(len(out)) {
			t.Errorf("%s: %d frames leave, %+v", c.what, len(out), h.Counters())
			continue
		}
		if !c.answer {
			continue
		}
		var e eth.Headers
		var f tunnel.Frame
		if b := out[0]; !e.Parse(b) || !f.Find(&e, b, tunnel.Recognition{VXLANPort: tunnel.Port}) || f.ID != red || eth.MAC(b) != macB ||
			eth.MAC(b[f.At:]) != mac(21) || eth.MAC(b[f.At+6:]) != mac(11) {
			t.Errorf("%s: % x", c.what, out[0])
		}
	}
	h.RemoveTenant(redA)
	if h.can(h.SetTenant(redA, red, mac(11))); h.Arrive(0, tunnelled(tunnel.Header{Kind: tunnel.VXLAN, ID: red}, arp(eth.Broadcast, "10.0.0.11"),
		nil), false).Frame == nil || len(h.drain()) != 0 {
		t.Error("one that comes again is answered for as the one before")
	}
}

// TestSend_Allocates: a frame in a tunnel needs no new memory, over IPv4 and, with a checksum, over IPv6.
func TestSend_Allocates(t *testing.T) {
	for _, own := range []string{"192.0.2.1/24", "2001:db8::1/64"} {
		p := netip.MustParsePrefix(own)
		far := p.Addr().Next()
		e := New(Config{MAC: macA, MTU: 1600})
		if err := e.SetTables(Tables{Records: []Record{{red, addr("10.0.0.21"), mac(21), far}},
			Addresses: []ProviderAddress{{p, 0, tunnel.VXLAN}}}); err != nil {
			t.Fatal(err)
		}
		if err := e.SetTenant(redA, red, mac(11)); err != nil {
			t.Fatal(err)
		}
		e.way(0, far)
		h := &host{t, e}
		if far.Is4() {
			h.learn(far, macB)
		} else {
			d := eth.Discovery{Advertisement: true, Solicited: true, Override: true, Target: far, Link: macB[:]}
			h.Arrive(0, d.AppendPacket((&eth.Ethernet{Dst: macA, Src: macB, Type: eth.TypeIPv6}).Append(nil), far, p.Addr()), false)
		}
		h.drain()
		b := plain(1024)
		send := func() {
			f := Frame{Head: b[:60], Body: b[60:]}
			if v := e.Send(0, redA, &f); v.Outer == nil {
				t.Fatalf("%s: %+v", own, v)
			}
		}
		send()
		if n := testing.AllocsPerRun(100, send); n != 0 {
			t.Errorf("%s: %v allocations for a frame", own, n)
		}
		o := tunnel.Outer{Ethernet: eth.Ethernet{Dst: macA, Src: macB}, Src: far, Dst: p.Addr(), TTL: 9, SrcPort: 50000,
			DstPort: tunnel.Port}
		in := o.Append(nil, tunnel.Header{Kind: tunnel.VXLAN, ID: red}, packet(mac(11), mac(21), "10.0.0.11", "10.0.0.21", 1000, 0, 64))
		if n := testing.AllocsPerRun(100, func() {
			if e.Arrive(0, in, false).Frame == nil {
				t.Fatalf("%s: %+v", own, e.Counters())
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations for a frame that arrives", own, n)
		}
	}
}

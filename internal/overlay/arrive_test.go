package overlay

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// TestArrive: a frame of another host goes to the adapter of its virtual subnet that has the address, and to nobody else; whatever is
// wrong with it is counted.
func TestArrive(t *testing.T) {
	in := packet(mac(11), mac(21), "10.0.0.11", "10.0.0.21", 9, 0, 64)
	vx, nv := tunnel.Header{Kind: tunnel.VXLAN, ID: red}, tunnel.Header{Kind: tunnel.NVGRE, ID: red, Flow: 0x5a}
	tag := eth.Ethernet{Dst: mac(11), Src: mac(21), Tagged: true, TCI: 5, Type: eth.TypeIPv4}
	spoil := func(b []byte, at int) []byte { b[at] ^= 1; return b }
	for _, c := range []struct {
		what string
		b    []byte
		to   Port
		all  bool
		why  Reason
	}{
		{what: "VXLAN", b: tunnelled(vx, in, nil), to: redA},
		{what: "VXLAN with a checksum", b: tunnelled(vx, in, func(o *tunnel.Outer) { o.Sum = true }), to: redA},
		{what: "NVGRE with a FlowID", b: tunnelled(nv, in, nil), to: redA},
		{what: "of a host of the domain", b: tunnelled(tunnel.Header{Kind: tunnel.VXLAN, ID: red}, in, nil), to: redA},
		{what: "to everybody", b: tunnelled(vx, packet(eth.Broadcast, mac(21), "10.0.0.255", "10.0.0.21", 9, 0, 64), nil), all: true},
		{what: "of another subnet", b: tunnelled(tunnel.Header{Kind: tunnel.VXLAN, ID: blue}, in, nil), why: Nobody},
		{what: "of a subnet that is not here", b: tunnelled(tunnel.Header{Kind: tunnel.VXLAN, ID: green}, in, nil), why: NoSubnet},
		{what: "of a host that no record has", b: tunnelled(vx, in, func(o *tunnel.Outer) { o.Src = gate }), why: NoHost},
		{what: "to another host", b: tunnelled(vx, in, func(o *tunnel.Outer) { o.Dst = gate }), why: Foreign},
		{what: "in a VLAN", b: tunnelled(vx, in, func(o *tunnel.Outer) { o.Ethernet.Tagged, o.Ethernet.TCI = true, 3 }), why: Foreign},
		{what: "to another port", b: tunnelled(vx, in, func(o *tunnel.Outer) { o.DstPort = 4788 }), why: Foreign},
		{what: "with a wrong checksum", b: spoil(tunnelled(vx, in, func(o *tunnel.Outer) { o.Sum = true }), 90), why: BadSum},
		{what: "with a wrong checksum of IP", b: spoil(tunnelled(vx, in, nil), 22), why: BadSum},
		{what: "with a tag inside", b: tunnelled(vx, append(tag.Append(nil), in[14:]...), nil), why: Tagged},
		{what: "from a group inside", b: tunnelled(vx, packet(mac(11), eth.Broadcast, "10.0.0.11", "10.0.0.21", 9, 0, 64), nil),
			why: Malformed},
		{what: "to a station that is not here", b: tunnelled(vx, packet(mac(99), mac(21), "10.0.0.11", "10.0.0.21", 9, 0, 64), nil), why: Nobody},
	} {
		h := newHost(t, tunnel.VXLAN, true)
		a := h.Arrive(0, c.b, false)
		n := h.Counters()
		if (a.Frame != nil) != (c.why == 0) || a.To != c.to || a.Everybody != c.all || n.Dropped[c.why] != 1 && c.why != 0 ||
			(n.Arrived == 1) != (c.why == 0) {
			t.Errorf("%s: %+v, counted %v", c.what, a, n.DroppedBy())
		}
		if a.Frame != nil && (a.Subnet != red || !c.all && !bytes.Equal(a.Frame, in)) {
			t.Errorf("%s: subnet %d, % x", c.what, a.Subnet, a.Frame)
		}
	}
	h := newHost(t, tunnel.VXLAN, true)
	b := tunnelled(vx, in, nil)
	b[eth.EthernetLen+6] |= 0x20 // more fragments
	eth.IPv4(b[eth.EthernetLen:][:eth.IPv4Len]).SetChecksum()
	if a := h.Arrive(0, b, false); a.Frame != nil || h.Counters().Dropped[Fragment] != 1 {
		t.Errorf("a fragment: %+v", a)
	}
}

// TestArrive_ECN: congestion that switches have marked outside is marked inside, or the packet is dropped if it could not say so (RFC 6040,
// 4.2).
func TestArrive_ECN(t *testing.T) {
	vx := tunnel.Header{Kind: tunnel.VXLAN, ID: red}
	marked := func(o *tunnel.Outer) { o.ToS = eth.ECNMarked }
	for _, c := range []struct {
		from, to    string
		class, want uint8
		why         Reason
	}{
		{"10.0.0.21", "10.0.0.11", eth.ECNCapable, eth.ECNMarked, 0}, {"10.0.0.21", "10.0.0.11", 0xb8, 0, Congested},
		{"fd00::21", "fd00::11", 1, eth.ECNMarked, 0}, {"fd00::21", "fd00::11", 0, 0, Congested},
	} {
		h := newHost(t, tunnel.VXLAN, true)
		a := h.Arrive(0, tunnelled(vx, packet(mac(11), mac(21), c.to, c.from, 9, c.class, 64), marked), false)
		if (a.Frame == nil) != (c.why != 0) || h.Counters().Dropped[c.why] != 1 && c.why != 0 {
			t.Errorf("%s of class %#x: %+v", c.from, c.class, a)
			continue
		}
		if a.Frame == nil {
			continue
		}
		x := parse(a.Frame)
		sound := x.Version != 4 || eth.IPv4(a.Frame[x.Network:][:eth.IPv4Len]).ChecksumOK()
		if got := class(&x, a.Frame); got != c.want|c.class || !sound {
			t.Errorf("%s of class %#x has %#x", c.from, c.class, got)
		}
	}
}

// TestArrive_Provider: who asks for a provider address is answered.
func TestArrive_Provider(t *testing.T) {
	h := newHost(t, tunnel.VXLAN, false)
	e := eth.Ethernet{Dst: eth.Broadcast, Src: macB, Type: eth.TypeARP}
	q := eth.ARP{Operation: eth.ARPRequest, SenderMAC: macB, SenderIP: hostB, TargetIP: hostA}
	h.Arrive(0, q.Append(e.Append(nil)), false)
	out := h.drain()
	if len(out) != 1 {
		t.Fatalf("% x", out)
	}
	a, err := eth.ParseARP(out[0][eth.EthernetLen:])
	if err != nil || a.Operation != eth.ARPReply || a.SenderMAC != macA || a.TargetMAC != macB {
		t.Errorf("%+v, %v", a, err)
	}
	h.can(h.SetTables(Tables{}))
	if h.Arrive(0, q.Append(e.Append(nil)), false); len(h.drain()) != 0 {
		t.Error("it answers for an address that it has no more")
	}
}

// FuzzArrive: whatever arrives, nothing is read that is not there, and a frame goes to the adapters of the subnet of its tunnel alone.
func FuzzArrive(f *testing.F) {
	in := packet(mac(11), mac(21), "10.0.0.11", "10.0.0.21", 9, 2, 64)
	f.Add(tunnelled(tunnel.Header{Kind: tunnel.VXLAN, ID: red}, in, func(o *tunnel.Outer) { o.Sum = true }))
	f.Add(tunnelled(tunnel.Header{Kind: tunnel.NVGRE, ID: blue}, in, func(o *tunnel.Outer) { o.ToS = 3 }))
	f.Add(arpFrom(macB, "192.0.2.2", "192.0.2.1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h := newHost(t, tunnel.VXLAN, true)
		a := h.Arrive(0, b, false)
		if a.Frame == nil {
			return
		}
		own := map[Port]uint32{redA: red, redB: red, blueA: blue}
		if len(a.Frame) < eth.EthernetLen || !a.Everybody && own[a.To] != a.Subnet {
			t.Errorf("%+v", a)
		}
	})
}

package port

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/overlay"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// TestOverlay: frames of stations in virtual subnets stay inside for others of their subnet here, leave in a tunnel for those elsewhere,
// and reach nobody else at the port; what arrives in a tunnel goes to its subnet alone, and what is answered to the sender.
func TestOverlay(t *testing.T) {
	h := newHive(t, eswitch.Config{})
	pf, none := h.add(eswitch.PF, 1, 0, anyVLAN), h.add(eswitch.VF(9), 9, 0, nil)
	apart := func(f *eswitch.Function) { f.VLAN = eswitch.VLAN{} }
	a, b, c := h.add(eswitch.VF(0), 10, 0, apart), h.add(eswitch.VF(1), 11, 0, apart), h.add(eswitch.VF(2), 12, 0, apart)
	all := []*bee{pf, none, a, b, c}
	own, far := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	away, mac, farMAC := eth.MAC{2, 0, 0, 0, 0, 99}, eth.MAC{2, 0xff, 0, 0, 0, 1}, eth.MAC{2, 0, 0, 0, 0, 77}
	at := eswitch.VPort(eswitch.MostVPorts - 1)
	if err := h.sw.Set(at, eswitch.Function{MACs: []eth.MAC{mac}, VLAN: eswitch.AnyVLAN(), Link: eswitch.LinkUp}); err != nil {
		t.Fatal(err)
	}
	e := overlay.New(overlay.Config{MAC: mac, MTU: 1500})
	customer := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }
	if err := e.SetTables(overlay.Tables{
		Records: []overlay.Record{{Subnet: 5001, Customer: customer(1), MAC: a.mac, Provider: own},
			{Subnet: 5001, Customer: customer(9), MAC: away, Provider: far}},
		Addresses: []overlay.ProviderAddress{{Address: netip.PrefixFrom(own, 24), Kind: tunnel.VXLAN}}}); err != nil {
		t.Fatal(err)
	}
	o := h.p.AttachOverlay(e, &h.w, Station{MAC: mac, Kind: Ethernet, At: at})
	for p, subnet := range map[eswitch.Port]uint32{eswitch.VF(0): 5001, eswitch.VF(1): 5001, eswitch.VF(2): 5002} {
		if err := e.SetTenant(overlay.Port(p), subnet, all[2+int(p-eswitch.VF(0))].mac); err != nil {
			t.Fatal(err)
		}
	}
	receive := func(f []byte) { h.p.Receive(0, &h.w, []frame.In{{Data: f, Raw: true}}) }
	answer := eth.ARP{Operation: eth.ARPReply, SenderMAC: farMAC, SenderIP: far, TargetMAC: mac, TargetIP: own}
	head := eth.Ethernet{Dst: mac, Src: farMAC, Type: eth.TypeARP}
	check := func(what, wire, leaves string, want map[*bee]int) {
		t.Helper()
		if wire != leaves {
			t.Errorf("%s: %x leaves, want %x", what, wire, leaves)
		}
		h.gets(what, want, all...)
	}
	h.sends(a, a.from(away, 0, eth.TypeIPv4)) // asks for the other host
	receive(answer.Append(head.Append(nil)))
	h.sends(pf, pf.from(eth.MAC{2, 0, 0, 0, 0, 98}, 0, eth.TypeIPv4)) // and has what waited leave
	h.gets("what the host says and asks", map[*bee]int{pf: 2, none: 2}, all...)

	check("to another one of the subnet", h.sends(a, a.from(b.mac, 0, eth.TypeIPv4)), "", map[*bee]int{b: 1})
	check("to one of another subnet", h.sends(a, a.from(c.mac, 0, eth.TypeIPv4)), "", nil)
	check("to one of none", h.sends(a, a.from(none.mac, 0, eth.TypeIPv4)), "", nil)
	check("from another's address", h.sends(a, none.from(b.mac, 0, eth.TypeIPv4)), "", nil)
	check("to one of a subnet from none", h.sends(none, none.from(a.mac, 0, eth.TypeIPv4)),
		string(none.from(a.mac, 0, eth.TypeIPv4)), nil)
	f := a.from(away, 0, eth.TypeIPv4)
	w := []byte(h.sends(a, f))
	if !bytes.HasSuffix(w, f) || len(w) != len(f)+50 || eth.MAC(w) != farMAC || eth.MAC(w[6:]) != mac {
		t.Errorf("to another host %x leaves", w)
	}
	q := eth.ARP{Operation: eth.ARPRequest, SenderMAC: a.mac, SenderIP: customer(1), TargetIP: customer(9)}
	ask := eth.Ethernet{Dst: eth.Broadcast, Src: a.mac, Type: eth.TypeARP}
	check("a question", h.sends(a, q.Append(ask.Append(nil))), "", map[*bee]int{a: 1})
	in := func(subnet uint32, f []byte) []byte {
		x := tunnel.Outer{Ethernet: eth.Ethernet{Dst: mac, Src: farMAC}, Src: far, Dst: own, TTL: 9, SrcPort: 50000, DstPort: 4789}
		return x.Append(nil, tunnel.Header{Kind: tunnel.VXLAN, ID: subnet}, f)
	}
	receive(in(5001, ethernetTo(a.mac, 0, 46)))
	receive(in(5001, ethernetTo(c.mac, 0, 46)))
	receive(in(5002, ethernetTo(a.mac, 0, 46)))
	receive(in(5001, ethernetTo(eth.Broadcast, 0, 46)))
	h.gets("in tunnels", map[*bee]int{a: 2, b: 1}, all...)
	receive(ethernetTo(a.mac, 0, 46))
	h.gets("without a tunnel", nil, all...)
	if !a.rdma.s.TakesLarge(b.mac, 0) || a.rdma.s.TakesLarge(away, 0) || a.rdma.s.TakesLarge(c.mac, 0) {
		t.Error("super-frames go elsewhere than to others of the subnet here")
	}
	testLarge(t, h, a, away, in)
	o.Detach()
	if h.w.overlay != nil || h.w.place(o.provider) != nil {
		t.Error("the overlay is still there")
	}
}

// testLarge: a super-frame leaves in one tunnel and comes out of one as it was, if the link takes such.
func testLarge(t *testing.T, h *hive, a *bee, away eth.MAC, in func(subnet uint32, f []byte) []byte) {
	t.Helper()
	if a.rdma.s.Encloses(away, 3000) {
		t.Error("a super-frame leaves on a link that takes none")
	}
	if h.w.Large = true; !a.rdma.s.Encloses(away, 3000) || a.rdma.s.Encloses(away, 65535) {
		t.Error("super-frames are cut, or too long ones leave")
	}
	task := offload.Task{Kind: offload.TCPv4, Segment: 1396, Sums: offload.MakeTransport}
	frameTo := func(dst, src eth.MAC) []byte {
		e := eth.Ethernet{Dst: dst, Src: src, Type: eth.TypeIPv4}
		var ip [eth.IPv4Len]byte
		eth.IPv4(ip[:]).Encode(0, len(ip)+eth.TCPLen+3000, 7, 64, eth.ProtocolTCP, [4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 9})
		b := append(append(e.Append(nil), ip[:]...), 0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 0, 5<<4, 0x10, 1, 0, 0, 0, 0, 0)
		return append(b, make([]byte, 3000)...)
	}
	f := frameTo(away, a.mac)
	a.send = append(a.send, frame.In{Data: f, Task: task})
	var out [4]frame.Out
	n, o := h.p.Transmit(0, out[:]), &out[0]
	if n != 1 || o.Inside || o.Task.Kind != offload.TCPv4|offload.Tunnel4 || o.Len() != len(f)+50 {
		t.Fatalf("%d leave, %d bytes with %+v", n, o.Len(), o.Task)
	}
	whole := task
	whole.Kind = task.Kind.Around(4)
	f = frameTo(a.mac, away)
	h.p.Receive(0, &h.w, []frame.In{{Data: in(5001, f), Raw: true, Task: whole}})
	if len(a.in) != 1 || !bytes.Equal(a.in[0].Data, f) || a.in[0].Task != task {
		t.Errorf("%d arrive: %+v", len(a.in), a.in)
	}
	a.in, h.w.Large = nil, false
}

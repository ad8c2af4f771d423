package overlay

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// TestSend_Golden: the headers before a frame are those of RFC 7348, 5, and RFC 7637, 3.2: VNI or VSID of 24 bits, a source port of the
// flow, no checksum of UDP over IPv4, the class of the packet inside, and no FlowID.
func TestSend_Golden(t *testing.T) {
	for _, kind := range []tunnel.Kind{tunnel.VXLAN, tunnel.NVGRE} {
		h := newHost(t, kind, true)
		inner := packet(mac(21), mac(11), "10.0.0.21", "10.0.0.11", 10, 0xb8, 64)
		_, b := h.send(redA, inner)
		if b == nil || !bytes.HasSuffix(b, inner) {
			t.Fatalf("%s: nothing leaves that ends with the frame: % x", kind, b)
		}
		var x eth.Headers
		var f tunnel.Frame
		if !x.Parse(b) || !f.Find(&x, b, tunnel.Recognition{VXLANPort: 4789, NVGRE: true}) || f.Kind != kind || f.ID != red || f.Flow != 0 {
			t.Fatalf("%s: it is %+v", kind, f)
		}
		ip := eth.IPv4(b[x.Network:])
		if ip.Src() != hostA || ip.Dst() != hostB || ip.ToS() != 0xb8 || !ip.ChecksumOK() || eth.MAC(b) != macB || eth.MAC(b[6:]) != macA ||
			x.End != len(b) {
			t.Errorf("%s: outside is % x", kind, b[:f.At])
		}
		want := "200065580013" + "8900" // a key, Ethernet, 5001 << 8
		if kind == tunnel.VXLAN {
			want = "12b5" + hex.EncodeToString([]byte{0, byte(8 + 8 + len(inner))}) + "0000" + "08000000" + "00138900"
			if p := eth.UDP(b[x.Transport:]).SrcPort(); p < tunnel.FirstSource {
				t.Errorf("source port %d, want %d or more", p, tunnel.FirstSource)
			}
		}
		if got := hex.EncodeToString(b[x.Transport:f.At]); !bytes.HasSuffix([]byte(got), []byte(want)) {
			t.Errorf("%s: the header is %s, want one that ends with %s", kind, got, want)
		}
	}
}

// TestSend_Flows: the source port is that of the flow inside: the same for its frames, another one for most other flows.
func TestSend_Flows(t *testing.T) {
	h := newHost(t, tunnel.VXLAN, true)
	ports := map[uint16]bool{}
	port := func(n byte, size int) uint16 {
		b := plain(size)
		b[eth.EthernetLen+eth.IPv4Len+1] = n // of the datagram's source port
		_, w := h.send(redA, b)
		return eth.UDP(w[eth.EthernetLen+eth.IPv4Len:]).SrcPort()
	}
	for n := range byte(64) {
		p := port(n, 10)
		if q := port(n, 900); p != q {
			t.Errorf("flow %d has the ports %d and %d", n, p, q)
		}
		ports[p] = true
	}
	if len(ports) < 56 {
		t.Errorf("64 flows have %d ports", len(ports))
	}
}

// TestSend: a frame goes to the adapter of its own virtual subnet that has the address, here or on the host of which a record says so,
// and else nowhere, for a reason that is counted.
func TestSend(t *testing.T) {
	tagged := eth.Ethernet{Dst: mac(21), Src: mac(11), Tagged: true, TCI: 7, Type: eth.TypeIPv4}
	for _, c := range []struct {
		what string
		from Port
		b    []byte
		to   Port // here
		host netip.Addr
		why  Reason
	}{
		{what: "to another one here", from: redA, b: packet(mac(12), mac(11), "10.0.0.12", "10.0.0.11", 1, 0, 64), to: redB},
		{what: "to the other host", from: redA, b: plain(1), host: hostB},
		{what: "the same address in another subnet", from: blueA, b: packet(mac(22), mac(13), "10.0.0.21", "10.0.0.11", 1, 0, 64), host: hostB},
		{what: "to a station of another subnet here", from: blueA, b: packet(mac(11), mac(13), "10.0.0.11", "10.0.0.21", 1, 0, 64), why: NoRecord},
		{what: "to a station of another subnet there", from: blueA, b: packet(mac(21), mac(13), "10.0.0.21", "10.0.0.11", 1, 0, 64), why: NoRecord},
		{what: "to itself", from: redA, b: packet(mac(11), mac(11), "10.0.0.11", "10.0.0.11", 1, 0, 64), why: Nobody},
		{what: "with a tag", from: redA, b: append(tagged.Append(nil), make([]byte, 60)...), why: Tagged},
		{what: "cut off", from: redA, b: make([]byte, 13), why: Malformed},
		{what: "of none", from: 9, b: plain(1), why: NoSubnet},
		{what: "larger than the wire takes", from: redA, b: plain(1500 - 50 - 28 + 1), why: TooLarge},
		{what: "just as large", from: redA, b: plain(1500 - 50 - 28), host: hostB},
	} {
		h := newHost(t, tunnel.VXLAN, true)
		v, w := h.send(c.from, c.b)
		if v.Why != c.why || v.Local != (c.to != 0) || v.To != c.to || (w != nil) != c.host.IsValid() || v.Everybody {
			t.Errorf("%s: %+v, % x", c.what, v, w)
		}
		if w != nil && eth.IPv4(w[eth.EthernetLen:]).Dst() != c.host {
			t.Errorf("%s: it goes to %s", c.what, eth.IPv4(w[eth.EthernetLen:]).Dst())
		}
		if n := h.Counters(); n.Dropped[c.why] == 0 && c.why != 0 || c.why == 0 && len(n.DroppedBy()) > 0 {
			t.Errorf("%s: counted %+v", c.what, n)
		}
	}
}

// TestSend_Groups: what is for everybody goes to the subnet's adapters here and, once, to each other host that has stations of it, never to
// another subnet.
func TestSend_Groups(t *testing.T) {
	h := newHost(t, tunnel.NVGRE, true)
	b := packet(eth.Broadcast, mac(11), "10.0.0.255", "10.0.0.11", 20, 0, 64)
	v, _ := h.send(redA, b)
	out := h.drain()
	if v.Why != 0 || !v.Everybody || len(out) != 1 || !bytes.HasSuffix(out[0], b) {
		t.Fatalf("%+v, % x", v, out)
	}
	var x eth.Headers
	var f tunnel.Frame
	if x.Parse(out[0]); !f.Find(&x, out[0], tunnel.Recognition{NVGRE: true}) || f.ID != red || x.Version != 4 {
		t.Errorf("it is %+v", f)
	}
	if v, _ = h.send(blueA, b); v.Everybody || len(h.drain()) != 1 {
		t.Errorf("the only one of a subnet here: %+v", v)
	}
}

// TestSend_Checksum: over IPv6 VXLAN has a checksum of UDP (RFC 8200, 8.1).
func TestSend_Checksum(t *testing.T) {
	h := newHost(t, tunnel.VXLAN, false)
	a, b := addr("fd01::1"), addr("fd01::2")
	h.can(h.SetTables(Tables{Records: []Record{{red, addr("10.0.0.21"), mac(21), b}},
		Addresses: []ProviderAddress{{netip.PrefixFrom(a, 64), 9, tunnel.VXLAN}}}))
	v, _ := h.send(redA, plain(33))
	if v.Why != 0 || v.Outer != nil {
		t.Fatalf("before the host is known: %+v", v)
	}
	d := eth.Discovery{Advertisement: true, Solicited: true, Override: true, Target: b, Link: macB[:]}
	e := eth.Ethernet{Dst: macA, Src: macB, Tagged: true, TCI: 9, Type: eth.TypeIPv6}
	h.drain()
	h.Arrive(0, d.AppendPacket(e.Append(nil), b, a), false)
	out := h.drain()
	if len(out) != 1 {
		t.Fatalf("%d frames leave once it is, want the one that waited", len(out))
	}
	w := out[0]
	udp := w[eth.EthernetLen+eth.VLANLen+eth.IPv6Len:]
	if eth.MAC(w) != macB || eth.UDP(udp).Checksum() == 0 || eth.PseudoChecksum(a, b, eth.ProtocolUDP, udp) != 0 {
		t.Errorf("the datagram outside has the checksum %#04x\n% x", eth.UDP(udp).Checksum(), w)
	}
}

// TestSend_Resolution: frames wait for the MAC of the host, or of the router to it, and leave when it is known, as many as there is room
// for; if nobody answers they are dropped.
func TestSend_Resolution(t *testing.T) {
	h := newHost(t, tunnel.VXLAN, false)
	for range mostHeld + 3 {
		h.send(redA, plain(1))
	}
	asked := h.drain()
	if len(asked) != 1 || asked[0][13] != 6 || h.Counters().Dropped[Congested] != 3 {
		t.Fatalf("asked % x, counted %+v", asked, h.Counters())
	}
	h.learn(hostB, macB)
	if out := h.drain(); len(out) != mostHeld || eth.MAC(out[0]) != macB {
		t.Errorf("%d frames leave", len(out))
	}
	far := tables(hostA, tunnel.VXLAN)
	far.Records[2].Provider, far.Records[3].Provider = addr("198.51.100.9"), addr("198.51.100.9")
	h.can(h.SetTables(far))
	if v, _ := h.send(redA, plain(1)); v.Why != 0 {
		t.Errorf("by the router: %+v", v)
	}
	if a, err := eth.ParseARP(h.drain()[0][eth.EthernetLen:]); err != nil || a.TargetIP != gate {
		t.Errorf("asked for %v, %v", a.TargetIP, err)
	}
	for now := h.Engine.Deadline(); h.Counters().Dropped[Unresolved] == 0; now = h.Engine.Deadline() {
		if now > 60*second {
			t.Fatal("the frame waits for more than a minute")
		}
		h.Advance(now)
	}
	far.Providers = nil
	h.can(h.SetTables(far))
	if v, _ := h.send(redA, plain(1)); v.Why != NoProvider {
		t.Errorf("without a route: %+v", v)
	}
}

package overlay

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

func arpFrom(src eth.MAC, from, to string) []byte {
	e := eth.Ethernet{Dst: eth.Broadcast, Src: src, Type: eth.TypeARP}
	a := eth.ARP{Operation: eth.ARPRequest, SenderMAC: src, SenderIP: addr(from), TargetIP: addr(to)}
	return a.Append(e.Append(nil))
}

// TestAnswer_ARP: what adapters ask is answered from the records of their own subnet, and does not leave; who asks for its own address
// gets no answer, so that it may have it.
func TestAnswer_ARP(t *testing.T) {
	for _, c := range []struct {
		what string
		from Port
		b    []byte
		want eth.MAC
		why  Reason
	}{
		{"on the other host", redA, arpFrom(mac(11), "10.0.0.11", "10.0.0.21"), mac(21), 0},
		{"here", redA, arpFrom(mac(11), "10.0.0.11", "10.0.0.12"), mac(12), 0},
		{"in the other subnet", blueA, arpFrom(mac(13), "10.0.0.11", "10.0.0.21"), mac(22), 0},
		{"of another subnet", blueA, arpFrom(mac(13), "10.0.0.11", "10.0.0.12"), eth.MAC{}, NoRecord},
		{"the router", redA, arpFrom(mac(11), "10.0.0.11", "10.0.0.1"), Router, 0},
		{"no router", blueA, arpFrom(mac(13), "10.0.0.11", "10.0.0.1"), eth.MAC{}, NoRecord},
		{"its own", redA, arpFrom(mac(11), "0.0.0.0", "10.0.0.11"), eth.MAC{}, 0},
		{"an announcement", redA, arpFrom(mac(11), "10.0.0.77", "10.0.0.77"), eth.MAC{}, 0},
		{"whether another's is free", redA, arpFrom(mac(11), "0.0.0.0", "10.0.0.12"), mac(12), 0},
		{"cut off", redA, arpFrom(mac(11), "10.0.0.11", "10.0.0.21")[:30], eth.MAC{}, Malformed},
	} {
		h := newHost(t, tunnel.VXLAN, true)
		v, w := h.send(c.from, c.b)
		silent := w == nil && !v.Local && !v.Everybody && len(h.drain()) == 0
		if v.Why != c.why || !silent || (v.Reply != nil) != (c.want != eth.MAC{}) {
			t.Errorf("%s: %+v", c.what, v)
			continue
		}
		if v.Reply == nil {
			continue
		}
		a, err := eth.ParseARP(v.Reply[eth.EthernetLen:])
		if err != nil || a.Operation != eth.ARPReply || a.SenderMAC != c.want || eth.MAC(v.Reply) != a.TargetMAC ||
			h.Counters().Answered != 1 {
			t.Errorf("%s: answered %+v, %v", c.what, a, err)
		}
	}
}

// TestAnswer_Discovery: so it is with IPv6.
func TestAnswer_Discovery(t *testing.T) {
	solicit := func(src, dst, target string) []byte {
		e := eth.Ethernet{Dst: eth.MAC{0x33, 0x33, 0xff, 0, 0, 0x21}, Src: mac(11), Type: eth.TypeIPv6}
		d := eth.Discovery{Target: addr(target)}
		if !addr(src).IsUnspecified() {
			m := mac(11)
			d.Link = m[:]
		}
		return d.AppendPacket(e.Append(nil), addr(src), addr(dst))
	}
	h := newHost(t, tunnel.VXLAN, true)
	for _, c := range []struct {
		src, target string
		to          netip.Addr
		why         Reason
	}{
		{"fd00::11", "fd00::21", addr("fd00::11"), 0}, {"::", "fd00::21", allNodes, 0}, {"fd00::11", "fd00::99", netip.Addr{}, NoRecord},
		{"::", "fd00::11", netip.Addr{}, NoRecord},
	} {
		v, w := h.send(redA, solicit(c.src, "ff02::1:ff00:21", c.target))
		if v.Why != c.why || w != nil || (v.Reply != nil) != c.to.IsValid() {
			t.Errorf("%s asks for %s: %+v", c.src, c.target, v)
			continue
		}
		if v.Reply == nil {
			continue
		}
		ip, body, err := eth.ParseIPv6(v.Reply[eth.EthernetLen:])
		if err != nil {
			t.Fatal(err)
		}
		m := mac(21)
		d, err := eth.ParseDiscovery(body, ip.Src(), ip.Dst(), ip.HopLimit())
		if err != nil || !d.Advertisement || ip.Dst() != c.to || eth.MAC(d.Link) != m || d.Solicited != (c.to != allNodes) {
			t.Errorf("%s asks for %s: %+v to %s, %v", c.src, c.target, d, ip.Dst(), err)
		}
	}
}

// TestAnswer_TooLarge: who sends a packet that may not be cut, and is too large for its headers outside, is told what size there is, as
// from where it was sent to (RFC 1191, RFC 8201); errors are not answered.
func TestAnswer_TooLarge(t *testing.T) {
	for _, k := range []tunnel.Kind{tunnel.VXLAN, tunnel.NVGRE} {
		want := map[tunnel.Kind]uint32{tunnel.VXLAN: 1450, tunnel.NVGRE: 1458}[k] // as Linux has them on 1500
		h := newHost(t, k, true)
		if h.Overhead() != int(1500-want) {
			t.Errorf("%s: the overhead is %d", k, h.Overhead())
		}
		b := plain(1600)
		v, _ := h.send(redA, b)
		ip, body, err := eth.ParseIPv4(v.Reply[eth.EthernetLen:])
		if err != nil || v.Why != TooLarge || eth.MAC(v.Reply) != mac(11) || ip.Src() != addr("10.0.0.21") || len(v.Reply) > 14+576 {
			t.Fatalf("%s: %v, %+v", k, err, v)
		}
		m, err := eth.ParseICMP(body)
		if err != nil || m.Type != eth.ICMPUnreachable || m.Code != eth.ICMPFragNeeded || m.Rest != want ||
			string(m.Data[:28]) != string(b[eth.EthernetLen:][:28]) {
			t.Errorf("%s: told %+v, %v", k, m, err)
		}
		v, _ = h.send(redA, packet(mac(21), mac(11), "fd00::21", "fd00::11", 1600, 0, 64))
		ip6, body, err := eth.ParseIPv6(v.Reply[eth.EthernetLen:])
		if err != nil || len(v.Reply) > 14+1280 {
			t.Fatalf("%s: %v, % x", k, err, v.Reply)
		}
		if m, err = eth.ParseICMPv6(body, ip6.Src(), ip6.Dst()); err != nil || m.Type != eth.ICMPv6PacketTooBig || m.Rest != want {
			t.Errorf("%s: told %+v, %v", k, m, err)
		}
	}
	h := newHost(t, tunnel.VXLAN, true)
	b := plain(1600)
	b[eth.EthernetLen+6] = 0 // may be cut
	if v, _ := h.send(redA, b); v.Why != TooLarge || v.Reply != nil {
		t.Errorf("one that may be cut: %+v", v)
	}
	b = plain(1600)
	b[eth.EthernetLen+9] = eth.ProtocolICMP
	b[eth.EthernetLen+eth.IPv4Len] = eth.ICMPUnreachable
	if v, _ := h.send(redA, b); v.Why != TooLarge || v.Reply != nil {
		t.Errorf("an error: %+v", v)
	}
}

package eth

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestDiscovery_Layout: RFC 4861 4.3 and 4.4, with the link-layer address option of RFC 2464 6.
func TestDiscovery_Layout(t *testing.T) {
	src, dst := netip.MustParseAddr("fe80::1"), netip.MustParseAddr("ff02::1:ff00:2")
	mac := MAC{2, 0, 0, 0, 0, 1}
	d := Discovery{Target: netip.MustParseAddr("fd00::2"), Link: mac[:]}
	b := d.AppendPacket(nil, src, dst)
	want := unhex(t, "60000000"+"00203aff"+"fe800000000000000000000000000001"+"ff0200000000000000000001ff000002"+
		"8700"+"0000"+"00000000"+"fd000000000000000000000000000002"+"0101020000000001")
	binary.BigEndian.PutUint16(want[42:], 0)
	binary.BigEndian.PutUint16(want[42:], PseudoChecksum(src, dst, ProtocolICMPv6, want[40:]))
	if !bytes.Equal(b, want) {
		t.Errorf("got  %x\nwant %x", b, want)
	}
	if h, payload, err := ParseIPv6(b); err != nil || !IsDiscovery(h, payload) {
		t.Errorf("%v: is no discovery", err)
	}
	a := Discovery{Advertisement: true, Router: true, Solicited: true, Override: true, Target: d.Target, Link: mac[:]}
	if b := a.AppendPacket(nil, d.Target, src); hex.EncodeToString(b[44:48]) != "e0000000" || b[40] != 136 || b[64] != 2 || b[65] != 1 {
		t.Errorf("advertisement %x", b)
	}
}

// TestDiscovery_ReadsBack: what is written is read, with the address of an Ethernet (6 bytes) and of an InfiniBand link
// (22 bytes with padding), and with none.
func TestDiscovery_ReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Discovery{Advertisement: rapid.Bool().Draw(t, "advertisement"), Target: netip.MustParseAddr("fd00::2")}
		if d.Advertisement {
			d.Router, d.Solicited, d.Override = rapid.Bool().Draw(t, "r"), rapid.Bool().Draw(t, "s"), rapid.Bool().Draw(t, "o")
		}
		if n := rapid.SampledFrom([]int{0, 6, 14, 22}).Draw(t, "link"); n > 0 {
			d.Link = rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "address")
		}
		src, dst := netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fe80::2")
		b := d.AppendPacket(nil, src, dst)
		got, err := ParseDiscovery(b[IPv6Len:], src, dst, b[ip6HopLimit])
		if diff := cmp.Diff(d, got, addrs); err != nil || diff != "" {
			t.Fatalf("%v, %s", err, diff)
		}
	})
}

// TestDiscovery_Refused: each rule of RFC 4861 7.1 is checked.
func TestDiscovery_Refused(t *testing.T) {
	src, dst, group := netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fe80::2"), netip.MustParseAddr("ff02::1")
	mac := MAC{2, 0, 0, 0, 0, 1}
	d := Discovery{Target: dst, Link: mac[:]}
	body := func(d Discovery, src, dst netip.Addr, change func(b []byte)) []byte {
		b := d.AppendPacket(nil, src, dst)[IPv6Len:]
		change(b)
		b[2], b[3] = 0, 0
		binary.BigEndian.PutUint16(b[2:], PseudoChecksum(src, dst, ProtocolICMPv6, b))
		return b
	}
	same := func([]byte) {}
	_, err := ParseDiscovery(body(d, src, dst, same), src, dst, 254)
	wrong(t, "routed", err, "nd hop limit")
	for field, change := range map[string]func(b []byte){
		"nd type": func(b []byte) { b[0] = 134 }, "nd code": func(b []byte) { b[1] = 1 }, "nd target": func(b []byte) { b[8] = 0xff },
		"nd option": func(b []byte) { b[25] = 0 },
	} {
		_, err := ParseDiscovery(body(d, src, dst, change), src, dst, 255)
		wrong(t, field, err, field)
	}
	_, err = ParseDiscovery(body(d, src, dst, func(b []byte) { b[25] = 2 }), src, dst, 255)
	wrong(t, "an option that is longer than the message", err, "nd option")
	cut := body(Discovery{Target: dst}, src, dst, same)[:20]
	cut[2], cut[3] = 0, 0
	binary.BigEndian.PutUint16(cut[2:], PseudoChecksum(src, dst, ProtocolICMPv6, cut))
	_, err = ParseDiscovery(cut, src, dst, 255)
	wrong(t, "20 bytes", err, "nd message")
	a := Discovery{Advertisement: true, Solicited: true, Target: src}
	_, err = ParseDiscovery(body(a, src, group, same), src, group, 255)
	wrong(t, "an answer to a group", err, "nd solicited flag")
	none := netip.IPv6Unspecified()
	_, err = ParseDiscovery(body(d, none, group, same), none, group, 255)
	wrong(t, "a station without an address", err, "nd source link-layer address")
	_, err = ParseDiscovery(body(d, src, dst, same), dst, dst, 255)
	wrong(t, "another source", err, "icmpv6 checksum")
}

func TestSolicitedNode(t *testing.T) {
	if got := SolicitedNode(netip.MustParseAddr("2001:db8::12:3456")); got != netip.MustParseAddr("ff02::1:ff12:3456") {
		t.Errorf("%v", got)
	}
}

// FuzzNeighbour: no bytes make the decoders of ARP and neighbour discovery panic, and what is accepted is stable.
func FuzzNeighbour(f *testing.F) {
	src, dst := netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fe80::2")
	mac := MAC{2, 0, 0, 0, 0, 1}
	arp := ARP{Operation: ARPRequest, SenderMAC: mac, SenderIP: netip.MustParseAddr("10.0.0.1"), TargetIP: netip.MustParseAddr("10.0.0.2")}
	f.Add(arp.Append(nil), uint8(255))
	d := Discovery{Target: dst, Link: mac[:]}
	f.Add(d.AppendPacket(nil, src, dst)[IPv6Len:], uint8(255))
	d = Discovery{Advertisement: true, Solicited: true, Target: src}
	f.Add(d.AppendPacket(nil, src, dst)[IPv6Len:], uint8(64))
	f.Fuzz(func(t *testing.T, b []byte, hops uint8) {
		if a, err := ParseARP(b); err == nil && !bytes.Equal(a.Append(nil), b[:ARPLen]) {
			t.Errorf("%x is written as %x", b, a.Append(nil))
		}
		if len(b) > 4 { // a correct checksum lets more of it be read
			b[2], b[3] = 0, 0
			binary.BigEndian.PutUint16(b[2:], PseudoChecksum(src, dst, ProtocolICMPv6, b))
		}
		d, err := ParseDiscovery(b, src, dst, hops)
		if err != nil {
			return
		}
		if d.Target.IsMulticast() || hops != NDPHopLimit {
			t.Errorf("a discovery of a multicast target or of another hop limit than 255 is accepted: %+v", d)
		}
		again, err := ParseDiscovery(d.AppendPacket(nil, src, dst)[IPv6Len:], src, dst, hops)
		if diff := cmp.Diff(d, again, addrs); err != nil || diff != "" {
			t.Errorf("%v, %s", err, diff)
		}
	})
}

package ipoib

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
	"pgregory.net/rapid"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var (
	one = Address{QPN: 0x000048, GID: ib.GID{0xfe, 0x80, 8: 0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x10, 0x01}}
	two = Address{Flags: flagRC, QPN: 0xabcdef, GID: ib.GID{0xfe, 0x80, 8: 0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x20, 0x02}}
)

// TestHeader: the header is the type and two reserved bytes, which are ignored on arrival (RFC 4391 6).
func TestHeader(t *testing.T) {
	for _, c := range []struct {
		t   eth.EtherType
		hex string
	}{{eth.TypeIPv4, "08000000"}, {eth.TypeARP, "08060000"}, {eth.TypeIPv6, "86dd0000"}} {
		b := appendHeader(nil, c.t)
		if hex.EncodeToString(b) != c.hex {
			t.Errorf("%#x: %x", c.t, b)
		}
		got, rest, err := parseHeader(append(b[:2:2], 0xff, 0xff, 1))
		if err != nil || got != c.t || !bytes.Equal(rest, []byte{1}) {
			t.Errorf("%#x: read %#x, %x, %v", c.t, got, rest, err)
		}
	}
	if _, _, err := parseHeader([]byte{8, 0, 0}); err == nil {
		t.Error("three bytes were accepted as a header")
	}
}

// TestARPGolden: ARP has hardware type 32 and 20-byte addresses of a flags byte, the queue pair and the GID (RFC 4391
// 9.1, 9.1.1).
func TestARPGolden(t *testing.T) {
	a := arp{Operation: eth.ARPReply, Sender: one, SenderIP: netip.MustParseAddr("10.0.0.1"), Target: two,
		TargetIP: netip.MustParseAddr("10.0.0.2")}
	want := unhex(t, `0020 0800 14 04 0002
		00000048 fe80000000000000 0002c90300001001 0a000001
		80abcdef fe80000000000000 0002c90300002002 0a000002`)
	if got := a.Append(nil); !bytes.Equal(got, want) || len(got) != arpLen {
		t.Fatalf("got  %x\nwant %x", got, want)
	}
	back, err := parseARP(append(want, 0, 0)) // padding does not matter
	if err != nil || back != a {
		t.Errorf("read %+v, %v", back, err)
	}
	for at, field := range map[int]string{1: "arp hardware type", 2: "arp protocol type", 4: "arp hardware address length",
		5: "arp protocol address length"} {
		bad := bytes.Clone(want)
		bad[at] ^= 0x40
		var f *formatError
		if _, err := parseARP(bad); !errors.As(err, &f) || f.Field != field {
			t.Errorf("byte %d changed: %v", at, err)
		}
	}
}

// TestDiscoveryGolden: the link-layer address option has length 3, two reserved bytes and the address (RFC 4391 9.3).
func TestDiscoveryGolden(t *testing.T) {
	src, dst := netip.MustParseAddr("fe80::202:c903:0:1001"), netip.MustParseAddr("ff02::1:ff00:2")
	d := discovery{Target: netip.MustParseAddr("fd00::2"), Link: one, HasLink: true}
	got := d.appendPacket(nil, src, dst)
	want := unhex(t, `60000000 0030 3a ff fe80000000000000 0202c90300001001 ff0200000000000000000001ff000002
		87 00 0000 00000000 fd000000000000000000000000000002
		01 03 0000 00000048 fe80000000000000 0002c90300001001`)
	copy(want[42:44], got[42:44]) // the checksum, which parseDiscovery checks
	if !bytes.Equal(got, want) {
		t.Fatalf("got  %x\nwant %x", got, want)
	}
	back, err := parseDiscovery(got[eth.IPv6Len:], src, dst, 255)
	if err != nil || back != d {
		t.Errorf("read %+v, %v", back, err)
	}
	if _, err := parseDiscovery(got[eth.IPv6Len:], src, dst, 254); err == nil {
		t.Error("hop limit 254 was accepted")
	}
	a := discovery{Advertisement: true, Solicited: true, Override: true, Target: d.Target, Link: two, HasLink: true}
	got = a.appendPacket(nil, d.Target, src)
	if hex.EncodeToString(got[44:48]) != "60000000" || got[eth.IPv6Len] != 136 || got[64] != 2 || got[65] != 3 {
		t.Errorf("advertisement %x", got)
	}
	if back, err := parseDiscovery(got[eth.IPv6Len:], d.Target, src, 255); err != nil || back != a {
		t.Errorf("read %+v, %v", back, err)
	}
	if _, err := parseDiscovery(a.appendPacket(nil, d.Target, dst)[eth.IPv6Len:], d.Target, dst, 255); err == nil {
		t.Error("a solicited advertisement to a group was accepted (RFC 4861 7.1.2)")
	}
}

// TestMGID: the MGIDs of multicast groups (RFC 4391 4). The examples of 224.0.0.1 and ff02::1 are those of that
// section with link-local scope.
func TestMGID(t *testing.T) {
	for _, c := range []struct {
		group string
		scope uint8
		key   ib.PKey
		want  string
	}{
		{"224.0.0.1", 2, 0xffff, "ff12:401b:ffff:0000:0000:0000:0000:0001"},
		{"239.255.255.250", 2, 0xffff, "ff12:401b:ffff:0000:0000:0000:0fff:fffa"},
		{"224.1.2.3", 5, 0x7123, "ff15:401b:f123:0000:0000:0000:0001:0203"},
		{"ff02::1", 2, 0xffff, "ff12:601b:ffff:0000:0000:0000:0000:0001"},
		{"ff02::1:ff12:3456", 2, 0x8001, "ff12:601b:8001:0000:0000:0001:ff12:3456"},
		{"ff1e:1:2:3:4:5:6:7", 2, 0xffff, "ff12:601b:ffff:0003:0004:0005:0006:0007"},
	} {
		g, ok := groupMGID(netip.MustParseAddr(c.group), c.scope, c.key)
		if !ok || g.String() != c.want {
			t.Errorf("%s: %v, want %s", c.group, g, c.want)
		}
	}
	if g := broadcastMGID(2, 0x7fff); g.String() != "ff12:401b:ffff:0000:0000:0000:ffff:ffff" {
		t.Errorf("the broadcast group of a limited key is %v, want that of the full one", g)
	}
	for _, a := range []string{"10.0.0.1", "255.255.255.255", "fe80::1"} {
		if g, ok := groupMGID(netip.MustParseAddr(a), 2, 0xffff); ok {
			t.Errorf("%s is group %v", a, g)
		}
	}
	if a := linkLocal(0x0002c90300001001); a.String() != "fe80::202:c903:0:1001" {
		t.Errorf("link-local %v", a)
	}
	if a := eth.SolicitedNode(netip.MustParseAddr("fd00::12:3456")); a.String() != "ff02::1:ff12:3456" {
		t.Errorf("solicited-node %v", a)
	}
}

// TestMAC: GUIDMask selects the six bytes of the GUID that make the MAC address; a mask without exactly six bits
// counts as the default 0xe7, which leaves the two middle bytes out.
func TestMAC(t *testing.T) {
	const guid = 0x02_11_22_33_44_55_66_77
	for _, c := range []struct {
		mask uint8
		want string
	}{
		{0, "02:11:22:55:66:77"}, {0xe7, "02:11:22:55:66:77"}, {0x3f, "22:33:44:55:66:77"}, {0xfc, "02:11:22:33:44:55"},
		{0x7e, "10:22:33:44:55:66"}, {0xff, "02:11:22:55:66:77"}, {0x1f, "02:11:22:55:66:77"},
	} {
		if got := MAC(guid, c.mask).String(); got != c.want {
			t.Errorf("%#x: %s, want %s", c.mask, got, c.want)
		}
	}
}

func anyAddress(t *rapid.T, name string) Address {
	return Address{rapid.Uint8().Draw(t, name+" flags"), ib.QPN(rapid.Uint32Max(uint32(ib.QPNMask)).Draw(t, name+" qpn")),
		ib.GID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name+" gid"))}
}

// TestRoundTrips: messages that are written read back the same.
func TestRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := arp{Operation: rapid.Uint16().Draw(t, "operation"), Sender: anyAddress(t, "sender"), Target: anyAddress(t, "target"),
			SenderIP: netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "ip"))), TargetIP: v4(3)}
		if got, err := parseARP(a.Append(nil)); err != nil || got != a {
			t.Fatalf("the ARP packet comes back as %+v, %v", got, err)
		}
		d := discovery{Advertisement: rapid.Bool().Draw(t, "advertisement"), Target: v6(1), Link: a.Sender,
			HasLink: rapid.Bool().Draw(t, "option")}
		if !d.HasLink {
			d.Link = Address{}
		}
		if d.Advertisement {
			d.Router, d.Override = rapid.Bool().Draw(t, "router"), rapid.Bool().Draw(t, "override")
		}
		p := d.appendPacket(nil, v6(2), allNodes[1])
		if got, err := parseDiscovery(p[eth.IPv6Len:], v6(2), allNodes[1], 255); err != nil || got != d {
			t.Fatalf("the neighbour discovery comes back as %+v, %v", got, err)
		}
	})
}

func FuzzParseARP(f *testing.F) {
	a := arp{Operation: 1, Sender: one, Target: two, SenderIP: v4(0), TargetIP: v4(1)}
	f.Add(a.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := parseARP(b); err == nil && !bytes.Equal(a.Append(nil), b[:arpLen]) {
			t.Errorf("%x is written as %x", b, a.Append(nil))
		}
	})
}

func FuzzParseDiscovery(f *testing.F) {
	d := discovery{Advertisement: true, Target: v6(1), Link: one, HasLink: true}
	f.Add(d.appendPacket(nil, v6(2), v6(3))[eth.IPv6Len:], uint8(255))
	d.Advertisement = false
	f.Add(d.appendPacket(nil, v6(2), v6(3))[eth.IPv6Len:], uint8(255))
	f.Fuzz(func(t *testing.T, b []byte, hops uint8) {
		if len(b) > 4 { // a correct checksum lets more of it be read
			b[2], b[3] = 0, 0
			sum := eth.PseudoChecksum(v6(2), v6(3), eth.ProtocolICMPv6, b)
			b[2], b[3] = byte(sum>>8), byte(sum)
		}
		d, err := parseDiscovery(b, v6(2), v6(3), hops)
		if err == nil && (d.Target.IsMulticast() || hops != 255) {
			t.Errorf("a discovery of a multicast target or of another hop limit than 255 is accepted: %+v", d)
		}
	})
}

// FuzzTransfer: whatever arrives and whatever the system sends, nothing breaks and the tables stay within their
// bounds.
func FuzzTransfer(f *testing.F) {
	a := arp{Operation: 1, Sender: two, Target: one, SenderIP: v4(1), TargetIP: v4(0)}
	f.Add(a.Append(appendHeader(nil, eth.TypeARP)))
	d := discovery{Target: v6(0), Link: two, HasLink: true}
	f.Add(d.appendPacket(appendHeader(nil, eth.TypeIPv6), v6(1), v6(0)))
	f.Add(append(appendHeader(nil, eth.TypeIPv4), generalQuery()...))
	f.Add(append(appendHeader(nil, eth.TypeIPv6), generalQuery6(v6(0))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		i := standing(t)
		in := Arrival{SLID: 9, SrcQP: two.QPN, HasGRH: true, SGID: two.GID, Data: b}
		if p := i.Receive(0, &in); len(p) > len(b) {
			t.Error("the packet is longer than what arrived")
		}
		if len(b) > HeaderLen {
			i.Send(0, b[HeaderLen:])
		}
		for n := 0; ; n++ {
			a, ok := i.Take()
			if !ok {
				break
			}
			if r, is := a.(Request); is {
				i.Response(0, append(b, r.MAD[:]...))
			}
			if n > 1000 {
				t.Fatal("the interface does not come to rest")
			}
		}
	})
}

func FuzzResponse(f *testing.F) {
	f.Add(make([]byte, 256))
	f.Fuzz(func(t *testing.T, b []byte) {
		i := standing(t)
		i.Resolve(0, v4(7))
		i.learn(0, v4(7), Address{QPN: 5, GID: ib.GID{0xfd, 15: 1}}, nil, true, true)
		for id, q := range i.queries {
			answer := q.sa
			answer.TransactionID, answer.Method = id, 0x81
			copy(answer.Data[:], b)
			i.Response(0, answer.Append(nil))
		}
	})
}

// standing returns an interface that is up without a network: the answers of the subnet administration are made by
// hand.
func standing(t testing.TB) *Interface {
	i, err := New(Config{}, func() uint64 { return 12345 })
	if err != nil {
		t.Fatal(err)
	}
	i.SetAddresses(0, []netip.Prefix{netip.PrefixFrom(v4(0), 24), netip.PrefixFrom(v6(0), 64)})
	i.SetQueuePair(0, one.QPN)
	i.SetPort(0, Port{Active: true, LID: 3, GID: one.GID, SMLID: 1, PKeys: []ib.PKey{0xffff}, MTU: ib.MTU2048})
	grant(i, nil)
	if i.State() != Up {
		t.Fatalf("the interface is %v, want up", i.State())
	}
	grant(i, nil)
	return i
}

package eth

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// plainSum is the Internet checksum as RFC 1071 defines it, 16 bits at a time.
func plainSum(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		w := uint32(b[i]) << 8
		if i+1 < len(b) {
			w |= uint32(b[i+1])
		}
		if s += w; s > 0xffff {
			s -= 0xffff
		}
	}
	return ^uint16(s)
}

func TestChecksumIsRFC1071s(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x7f, 0x80, 0xfe, 0xff}), 0, 70).Draw(t, "bytes")
		if got, want := Checksum(b), plainSum(b); got != want {
			t.Fatalf("%#04x, want %#04x", got, want)
		}
	})
	// The example of RFC 1071 3.
	if got := Checksum(unhex(t, "0001f203f4f5f6f7")); got != ^uint16(0xddf2) {
		t.Errorf("%#04x, want %#04x", got, ^uint16(0xddf2))
	}
}

// The pseudo header of IPv6 has 32-bit length and next header (RFC 8200 8.1), that of IPv4
// a byte and a 16-bit length (RFC 768); written out they give the same sum.
func TestPseudoChecksum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "payload")
		proto := rapid.Byte().Draw(t, "protocol")
		s4, d4 := draw4(t, "src4"), draw4(t, "dst4")
		b := append(s4.AsSlice(), d4.AsSlice()...)
		b = append(b, 0, proto)
		b = binary.BigEndian.AppendUint16(b, uint16(len(payload)))
		if got, want := PseudoChecksum(s4, d4, proto, payload), plainSum(append(b, payload...)); got != want {
			t.Fatalf("IPv4: %#04x, want %#04x", got, want)
		}
		s6, d6 := draw6(t, "src6"), draw6(t, "dst6")
		b = append(s6.AsSlice(), d6.AsSlice()...)
		b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
		b = append(b, 0, 0, 0, proto)
		if got, want := PseudoChecksum(s6, d6, proto, payload), plainSum(append(b, payload...)); got != want {
			t.Fatalf("IPv6: %#04x, want %#04x", got, want)
		}
	})
}

func TestIPv4ReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "payload")
		src, dst := draw4(t, "src"), draw4(t, "dst")
		tos, ttl, proto, id := rapid.Byte().Draw(t, "tos"), rapid.Byte().Draw(t, "ttl"), rapid.Byte().Draw(t, "protocol"),
			rapid.Uint16().Draw(t, "id")
		b := bytes.Repeat([]byte{0x5a}, IPv4Len)
		IPv4(b).Encode(tos, IPv4Len+len(payload), id, ttl, proto, src.As4(), dst.As4())
		b = append(b, payload...)
		b = append(b, make([]byte, rapid.IntRange(0, 10).Draw(t, "padding"))...)
		h, rest, err := ParseIPv4(b)
		if err != nil {
			t.Fatal(err)
		}
		if h.ToS() != tos || h.ID() != id || h.TTL() != ttl || h.Protocol() != proto || h.Src() != src || h.Dst() != dst ||
			!h.DontFragment() || h.Fragment() || h.HeaderLen() != IPv4Len || !bytes.Equal(rest, payload) {
			t.Fatalf("% x does not read back", b)
		}
		h.SetToS(tos + 1)
		if h.ChecksumOK() {
			t.Fatal("the checksum does not see the type of service")
		}
		h.SetID(id + 1)
		h.SetChecksum()
		if !h.ChecksumOK() || h.ID() != id+1 || h.ToS() != tos+1 {
			t.Fatal("setters do not read back")
		}
	})
}

func TestIPv4Refuses(t *testing.T) {
	good := make([]byte, IPv4Len+8)
	IPv4(good).Encode(0, len(good), 1, 64, ProtocolUDP, [4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 2})
	change := func(f func(b []byte)) []byte {
		b := bytes.Clone(good)
		f(b)
		return b
	}
	for _, c := range []struct {
		name, field string
		b           []byte
	}{
		{"19 bytes", "ipv4 header", good[:19]},
		{"version 6", "ip version", change(func(b []byte) { b[0] = 0x65 })},
		{"header of 16 bytes", "ipv4 header length", change(func(b []byte) { b[0] = 0x44 })},
		{"total below the header", "ipv4 total length", change(func(b []byte) { IPv4(b).SetTotalLen(19) })},
		{"header longer than the packet", "ipv4 total length", change(func(b []byte) { b[0] = 0x4f })},
		{"cut off", "ipv4 packet", good[:27]},
		{"checksum", "ipv4 header checksum", change(func(b []byte) { b[8]-- })},
	} {
		_, _, err := ParseIPv4(c.b)
		wrong(t, c.name, err, c.field)
	}
	f := change(func(b []byte) { b[6] = 0x20; IPv4(b).SetChecksum() })
	if h, _, err := ParseIPv4(f); err != nil || !h.Fragment() || h.DontFragment() {
		t.Errorf("a first fragment: %v", err)
	}
	f = change(func(b []byte) { b[6], b[7] = 0, 1; IPv4(b).SetChecksum() })
	if h, _, err := ParseIPv4(f); err != nil || !h.Fragment() {
		t.Errorf("a last fragment: %v", err)
	}
}

func TestIPv6ReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "payload")
		src, dst := draw6(t, "src"), draw6(t, "dst")
		class, hops, next, label := rapid.Byte().Draw(t, "class"), rapid.Byte().Draw(t, "hops"), rapid.Byte().Draw(t, "next"),
			rapid.Uint32().Draw(t, "label")
		b := bytes.Repeat([]byte{0x5a}, IPv6Len)
		IPv6(b).Encode(class, label, len(payload), next, hops, src.As16(), dst.As16())
		b = append(b, payload...)
		h, rest, err := ParseIPv6(append(b, 1, 2, 3))
		if err != nil {
			t.Fatal(err)
		}
		if h.TrafficClass() != class || h.FlowLabel() != label&0xfffff || h.NextHeader() != next || h.HopLimit() != hops ||
			h.Src() != src || h.Dst() != dst || !bytes.Equal(rest, payload) {
			t.Fatalf("% x does not read back", b)
		}
		_, _, err = ParseIPv6(b[:len(b)-1])
		if err == nil {
			t.Fatal("a packet that is cut off was read")
		}
	})
	_, _, err := ParseIPv6(append([]byte{0x40}, make([]byte, 39)...))
	wrong(t, "version 4", err, "ip version")
}

func TestUDP(t *testing.T) {
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	b := append(make([]byte, UDPLen), "hello"...)
	h := UDP(b)
	h.Encode(0xc001, PortRoCEv2, len(b))
	h.SetChecksum(UDPChecksum(src, dst, b))
	if got := PseudoChecksum(src, dst, ProtocolUDP, b); got != 0 {
		t.Errorf("the checksum leaves %#x", got)
	}
	got, payload, err := ParseUDP(append(b, 0))
	if err != nil || got.SrcPort() != 0xc001 || got.DstPort() != 4791 || got.Length() != 13 || string(payload) != "hello" {
		t.Errorf("% x, %q, %v", []byte(got), payload, err)
	}
	_, _, err = ParseUDP(b[:7])
	wrong(t, "7 bytes", err, "udp header")
	_, _, err = ParseUDP(b[:12])
	wrong(t, "cut off", err, "udp datagram")
	h.Encode(1, 2, 7)
	_, _, err = ParseUDP(b)
	wrong(t, "length 7", err, "udp length")
}

// RFC 768: a checksum that comes out as 0 is sent as ones, since 0 means none.
func TestUDPChecksumIsNeverZero(t *testing.T) {
	src := netip.AddrFrom4([4]byte{})
	b := make([]byte, UDPLen+2)
	// Protocol and length are 17 + 10 = 27; 0xffff-27 in the payload makes the sum ones.
	binary.BigEndian.PutUint16(b[UDPLen:], 0xffff-27)
	if c := PseudoChecksum(src, src, ProtocolUDP, b); c != 0 {
		t.Fatalf("the example's checksum is %#x, want 0", c)
	}
	if got := UDPChecksum(src, src, b); got != 0xffff {
		t.Errorf("%#x, want 0xffff", got)
	}
}

// FuzzIP: no bytes make a decoder panic, and what is accepted lies inside the bytes given.
func FuzzIP(f *testing.F) {
	b := make([]byte, IPv4Len+UDPLen)
	IPv4(b).Encode(0, len(b), 1, 64, ProtocolUDP, [4]byte{}, [4]byte{})
	UDP(b[IPv4Len:]).Encode(1, 2, UDPLen)
	f.Add(b)
	b = make([]byte, IPv6Len+UDPLen)
	IPv6(b).Encode(0, 0, UDPLen, ProtocolUDP, 64, [16]byte{}, [16]byte{})
	f.Add(b)
	e := Ethernet{Tagged: true, TCI: 1, Type: TypeIPv6}
	f.Add(append(e.Append(nil), b...))
	f.Add((&ARP{Operation: 1}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, rest, err := ParseEthernet(b); err == nil {
			if got := append(h.Append(nil), rest...); !bytes.Equal(got, b) {
				t.Fatalf("ethernet: % x comes back as % x", b, got)
			}
		}
		if h, rest, err := ParseIPv4(b); err == nil {
			if len(h)+len(rest) != h.TotalLen() || !bytes.Equal(append(bytes.Clone(h), rest...), b[:h.TotalLen()]) {
				t.Fatalf("ipv4: header of %d and payload of %d bytes, total length %d", len(h), len(rest), h.TotalLen())
			}
			_, _, _ = ParseUDP(rest)
		}
		if h, rest, err := ParseIPv6(b); err == nil {
			got := make(IPv6, IPv6Len)
			got.Encode(h.TrafficClass(), h.FlowLabel(), len(rest), h.NextHeader(), h.HopLimit(), h.Src().As16(), h.Dst().As16())
			if !bytes.Equal(got, h) {
				t.Fatalf("ipv6: % x comes back as % x", []byte(h), []byte(got))
			}
		}
		if a, err := ParseARP(b); err == nil {
			if got := a.Append(nil); !bytes.Equal(got, b[:ARPLen]) {
				t.Fatalf("arp: % x comes back as % x", b, got)
			}
		}
	})
}

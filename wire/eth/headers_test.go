package eth

import (
	"encoding/binary"
	"slices"
	"testing"
)

// frameOf returns a frame with tags and an IP packet: extension headers or options, and a payload.
func frameOf(tags []uint16, version int, options []byte, next, protocol uint8, payload []byte) []byte {
	b := make([]byte, 12)
	for _, tci := range tags {
		b = binary.BigEndian.AppendUint16(b, uint16(TypeVLAN))
		b = binary.BigEndian.AppendUint16(b, tci)
	}
	if version == 4 {
		b = binary.BigEndian.AppendUint16(b, uint16(TypeIPv4))
		ip := make(IPv4, IPv4Len, IPv4Len+len(options))
		ip.Encode(0, IPv4Len+len(options)+len(payload), 1, 64, protocol, [4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 2})
		ip[0] += uint8(len(options) / 4)
		ip = append(ip, options...)
		ip.SetChecksum()
		return append(append(b, ip...), payload...)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(TypeIPv6))
	ip := make(IPv6, IPv6Len)
	ip.Encode(0, 0, len(options)+len(payload), next, 64, [16]byte{0xfe, 0x80, 15: 1}, [16]byte{0xfe, 0x80, 15: 2})
	return append(append(append(b, ip...), options...), payload...)
}

// tcp is a TCP header with 12 bytes of options, and 3 bytes of data.
var tcp = append([]byte{0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 0, 8 << 4, 0x10, 0, 0, 0, 0, 0, 0}, slices.Repeat([]byte{1}, 15)...)

// udp is a UDP datagram of 2 bytes.
var udp = []byte{0, 80, 0, 81, 0, 10, 0, 0, 7, 7}

// home are the destination options of a mobile node: padding and its address (RFC 6275 6.3).
var home = append([]byte{ProtocolUDP, 2, 1, 2, 0, 0, homeAddress, 16}, slices.Repeat([]byte{9}, 16)...)

// routing is a routing header of type 2 (RFC 6275 6.4).
var routing = append([]byte{ProtocolTCP, 2, 2, 1, 0, 0, 0, 0}, slices.Repeat([]byte{8}, 16)...)

func TestHeaders(t *testing.T) {
	fragment := func(first byte) []byte { return []byte{ProtocolUDP, 0, 0, first, 0, 0, 0, 7} }
	chain := slices.Concat([]byte{nextRouting, 0, 1, 4, 0, 0, 0, 0}, routing)
	long := slices.Repeat([]byte{ProtocolHopByHop, 0, 1, 4, 0, 0, 0, 0}, maxExtensions+1)
	part := frameOf(nil, 4, nil, 0, ProtocolTCP, tcp)
	part[EthernetLen+6] = 0x20 // more fragments
	for _, c := range []struct {
		name  string
		frame []byte
		want  Headers
	}{
		{"TCP over IPv4", frameOf(nil, 4, nil, 0, ProtocolTCP, tcp),
			Headers{Type: TypeIPv4, Version: 4, Protocol: ProtocolTCP, Network: 14, Transport: 34, End: 69, Data: 66}},
		{"options, and padding of Ethernet", append(frameOf(nil, 4, []byte{1, 1, 1, 0}, 0, ProtocolUDP, udp), 0, 0, 0, 0),
			Headers{Type: TypeIPv4, Version: 4, Protocol: ProtocolUDP, Options: true, Network: 14, Transport: 38, End: 48, Data: 46}},
		{"two tags", frameOf([]uint16{3<<13 | 5, 6}, 4, nil, 0, ProtocolUDP, udp),
			Headers{Type: TypeIPv4, TCI: 3<<13 | 5, Tags: 2, Version: 4, Protocol: ProtocolUDP, Network: 22, Transport: 42, End: 52,
				Data: 50}},
		{"too many tags", frameOf([]uint16{1, 2, 3, 4, 5}, 4, nil, 0, ProtocolUDP, udp),
			Headers{Type: TypeVLAN, TCI: 1, Tags: 4, Network: 30}},
		{"a fragment has no ports (RFC 791)", part,
			Headers{Type: TypeIPv4, Version: 4, Protocol: ProtocolTCP, Fragment: true, Network: 14, Transport: 34, End: 69}},
		{"another protocol", frameOf(nil, 4, nil, 0, ProtocolICMP, udp),
			Headers{Type: TypeIPv4, Version: 4, Protocol: ProtocolICMP, Network: 14, Transport: 34, End: 44}},
		{"a TCP header that is cut off", frameOf(nil, 4, nil, 0, ProtocolTCP, tcp[:24]),
			Headers{Type: TypeIPv4, Version: 4, Protocol: ProtocolTCP, Network: 14, Transport: 34, End: 58}},
		{"UDP over IPv6", frameOf(nil, 6, nil, ProtocolUDP, 0, udp),
			Headers{Type: TypeIPv6, Version: 6, Protocol: ProtocolUDP, Network: 14, Transport: 54, End: 64, Data: 62}},
		{"hop by hop, routing (RFC 8200 4)", frameOf(nil, 6, chain, ProtocolHopByHop, 0, tcp),
			Headers{Type: TypeIPv6, Version: 6, Protocol: ProtocolTCP, Options: true, Network: 14, Transport: 86, End: 121, Data: 118,
				Routing: 70}},
		{"home address", frameOf(nil, 6, home, nextDestination, 0, udp),
			Headers{Type: TypeIPv6, Version: 6, Protocol: ProtocolUDP, Options: true, Network: 14, Transport: 78, End: 88, Data: 86,
				HomeAddress: 62}},
		{"the first fragment of IPv6", frameOf(nil, 6, fragment(1), nextFragment, 0, udp),
			Headers{Type: TypeIPv6, Version: 6, Protocol: ProtocolUDP, Options: true, Fragment: true, Network: 14, Transport: 62, End: 72}},
		{"an atomic fragment is a packet (RFC 6946)", frameOf(nil, 6, fragment(0), nextFragment, 0, udp),
			Headers{Type: TypeIPv6, Version: 6, Protocol: ProtocolUDP, Options: true, Network: 14, Transport: 62, End: 72, Data: 70}},
		{"too many extension headers", frameOf(nil, 6, long, ProtocolHopByHop, 0, udp),
			Headers{Type: TypeIPv6, Version: 6, Options: true, Network: 14, Transport: 54 + 8*maxExtensions, End: 136}},
		{"an extension header beyond the packet", frameOf(nil, 6, []byte{ProtocolUDP, 9, 0, 0, 0, 0, 0, 0}, nextDestination, 0, nil),
			Headers{Type: TypeIPv6, Version: 6, Protocol: nextDestination, Options: true, Network: 14, Transport: 54, End: 62}},
		{"a packet beyond the frame", frameOf(nil, 4, nil, 0, ProtocolUDP, udp)[:40], Headers{Type: TypeIPv4, Network: 14}},
		{"ARP", append(make([]byte, 12), 8, 6), Headers{Type: TypeARP, Network: 14}},
	} {
		var h Headers
		if ok := h.Parse(c.frame); !ok || h != c.want {
			t.Errorf("%s: %t\n got %+v\nwant %+v", c.name, ok, h, c.want)
		}
	}
	var h Headers
	for n := range 14 {
		if h.Parse(make([]byte, n)) {
			t.Errorf("a frame of %d bytes has an Ethernet header", n)
		}
	}
	if h.Parse(frameOf([]uint16{1}, 4, nil, 0, 0, nil)[:17]) {
		t.Error("half a tag is an Ethernet header")
	}
}

// FuzzHeaders: whatever a frame says, places are within it, in order, and the payload's protocol is known.
func FuzzHeaders(f *testing.F) {
	f.Add(frameOf([]uint16{1, 2}, 4, []byte{1, 1, 1, 0}, 0, ProtocolTCP, tcp))
	f.Add(frameOf(nil, 6, home, nextDestination, 0, udp))
	f.Add(frameOf(nil, 6, routing, nextRouting, 0, tcp))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, ip Headers
		if !h.Parse(b) {
			return
		}
		if h.Network < EthernetLen || h.Network > len(b) || h.Transport > h.End || h.End > len(b) || h.Data > h.End {
			t.Fatalf("%+v for %d bytes", h, len(b))
		}
		if h.Version != 0 && h.Transport < h.Network+IPv4Len || h.Data != 0 && h.Data < h.Transport+UDPLen {
			t.Fatalf("%+v", h)
		}
		for _, at := range []int{h.HomeAddress, h.Routing} {
			if at != 0 && (at < h.Network+IPv6Len || at+16 > h.Transport) {
				t.Fatalf("%+v", h)
			}
		}
		if h.Version != 0 {
			ip.ParseIP(b[h.Network:])
			if ip.Transport != h.Transport-h.Network || ip.Protocol != h.Protocol || ip.Version != h.Version {
				t.Fatalf("frame: %+v, packet: %+v", h, ip)
			}
		}
	})
}

func BenchmarkParseHeaders(b *testing.B) {
	for name, f := range map[string][]byte{
		"TCPv4": frameOf(nil, 4, nil, 0, ProtocolTCP, tcp), "TCPv6": frameOf(nil, 6, nil, ProtocolTCP, 0, tcp),
		"tagged": frameOf([]uint16{1}, 4, nil, 0, ProtocolTCP, tcp),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var h Headers
			for b.Loop() {
				h.Parse(f)
			}
		})
	}
}

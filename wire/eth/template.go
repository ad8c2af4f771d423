package eth

import (
	"encoding/binary"
	"net/netip"
)

// Template holds the Ethernet and IP headers that all UDP datagrams from one address to another have in common, so that
// those of one datagram cost a copy and a few stores.
type Template struct {
	bytes [EthernetLen + IPv6Len]byte
	v6    bool
	// sum is the ones' complement sum of the 16-bit words of the IPv4 header in bytes, in which type of service, length and
	// time to live are 0.
	sum uint32
}

// Set makes the template for frames without a tag, from the station and address src to the station and address to.
func (t *Template) Set(dst, src MAC, from, to netip.Addr) {
	d := Datagram{Src: from, Dst: to}
	*t = Template{v6: !to.Is4()}
	h := Ethernet{Dst: dst, Src: src, Type: d.Type()}
	h.Put(t.bytes[:])
	ip := t.bytes[EthernetLen:]
	if t.v6 {
		IPv6(ip).Encode(0, 0, 0, ProtocolUDP, 0, bytes16(from), bytes16(to))
		return
	}
	IPv4(ip).Encode(0, 0, 0, 0, ProtocolUDP, bytes4(from), bytes4(to))
	t.sum = uint32(^IPv4(ip).Checksum())
}

// Put writes the headers of a datagram of n bytes, its UDP header included, to b, which has room for EthernetLen+IPv6Len
// bytes whatever the family. end is where the UDP header goes.
func (t *Template) Put(b []byte, class, hops uint8, flowLabel uint32, n int) (end int) {
	const at = EthernetLen
	*(*[len(t.bytes)]byte)(b) = t.bytes
	if t.v6 {
		binary.BigEndian.PutUint32(b[at:], ip6Word(class, flowLabel))
		binary.BigEndian.PutUint16(b[at+ip6Length:], uint16(n))
		b[at+ip6HopLimit] = hops
		return at + IPv6Len
	}
	n += IPv4Len
	b[at+ip4ToS], b[at+ip4TTL] = class, hops
	binary.BigEndian.PutUint16(b[at+ip4Length:], uint16(n))
	sum := t.sum + uint32(class) + uint32(n) + uint32(hops)<<8
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(b[at+ip4Checksum:], ^uint16(sum+sum>>16))
	return at + IPv4Len
}

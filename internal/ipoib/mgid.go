package ipoib

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/wire/ib"
)

// linkLocalScope is the default scope of the broadcast group (RFC 4391 4).
const linkLocalScope = 2

// Signatures of IPoIB in the second 16 bits of a multicast GID (RFC 4391 4).
const (
	signatureIPv4 = 0x401b
	signatureIPv6 = 0x601b
)

// broadcastMGID returns the multicast GID of a partition's broadcast group:
// ff1<scope>:401b:<P_Key>::ffff:ffff, with the P_Key of full members (RFC 4391 4).
func broadcastMGID(scope uint8, key ib.PKey) ib.GID {
	g := mgid(scope, signatureIPv4, key)
	g[12], g[13], g[14], g[15] = 0xff, 0xff, 0xff, 0xff
	return g
}

// groupMGID returns the multicast GID for an IP multicast group: it contains the low 28 bits of an IPv4
// address, or the low 80 of an IPv6 address (RFC 4391 4). ok is false if group is not a multicast address.
func groupMGID(group netip.Addr, scope uint8, key ib.PKey) (g ib.GID, ok bool) {
	group = group.Unmap()
	if !group.IsMulticast() {
		return g, false
	}
	if group.Is4() {
		v := group.As4()
		g = mgid(scope, signatureIPv4, key)
		copy(g[12:], v[:])
		g[12] &= 0x0f
		return g, true
	}
	v := group.As16()
	g = mgid(scope, signatureIPv6, key)
	copy(g[6:], v[6:])
	return g, true
}

func mgid(scope uint8, signature uint16, key ib.PKey) (g ib.GID) {
	g[0], g[1] = 0xff, 0x10|scope&0x0f
	binary.BigEndian.PutUint16(g[2:], signature)
	binary.BigEndian.PutUint16(g[4:], uint16(key)|0x8000)
	return g
}

// linkLocal returns the IPv6 link-local address derived from a port's GUID: the GUID is an EUI-64, whose
// universal bit is inverted in an interface identifier (RFC 4391 8).
func linkLocal(guid uint64) netip.Addr {
	a := [16]byte{0xfe, 0x80}
	binary.BigEndian.PutUint64(a[8:], guid|2<<56)
	return netip.AddrFrom16(a)
}

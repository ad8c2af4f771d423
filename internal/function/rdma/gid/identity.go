package gid

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/wire/ib"
)

// FromMAC returns the GID that RoCE v1 derives from a MAC, in a VLAN if vlan is not 0, as an address.
func FromMAC(mac [6]byte, vlan uint16) netip.Addr { return netip.AddrFrom16(ib.GIDFromMAC(mac, vlan)) }

// MAC returns a locally administered MAC for a port whose interface has none.
func MAC(addr netip.Addr) [6]byte {
	b := addr.As16()
	return [6]byte{0x02, 0x56 ^ b[11], b[12], b[13], b[14], b[15]}
}

// GUID derives the EUI-64 of a port from its MAC. Adapters may share an interface, and their GUIDs must
// differ: what would be ff:fe in an EUI-64 derived from a MAC alone is a hash of the address and UDP port
// here.
func GUID(mac [6]byte, addr netip.AddrPort) uint64 {
	h := uint32(2166136261)
	ip := addr.Addr().As16()
	for _, b := range append(ip[:], byte(addr.Port()>>8), byte(addr.Port())) {
		h = (h ^ uint32(b)) * 16777619
	}
	g := uint64(0)
	for _, b := range []byte{mac[0] ^ 2, mac[1], mac[2], byte(h>>24) ^ byte(h>>8), byte(h>>16) ^ byte(h), mac[3], mac[4], mac[5]} {
		g = g<<8 | uint64(b)
	}
	return g
}

// LinkLocal is the default GID prefix (IBA 4.1.3): a port always has a GID with it.
const LinkLocal = 0xfe80 << 48

// Of returns the GID of an InfiniBand port as an address.
func Of(prefix, guid uint64) netip.Addr {
	var g [16]byte
	binary.BigEndian.PutUint64(g[:], prefix)
	binary.BigEndian.PutUint64(g[8:], guid)
	return netip.AddrFrom16(g)
}

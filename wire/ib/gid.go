package ib

import (
	"net/netip"
)

// GID is a global identifier: 16 bytes with the layout of an IPv6 address (IBA 4.1).
// RoCE ports have IPv4-mapped and IPv6 addresses as GIDs. It is comparable and its zero
// value is the reserved GID.
type GID [16]byte

// GIDFromAddr is the GID of an IP address; IPv4 addresses are mapped (::ffff:a.b.c.d). The zone is
// dropped.
func GIDFromAddr(a netip.Addr) GID {
	if !a.IsValid() {
		return GID{}
	}
	return GID(a.As16())
}

// GIDFromMAC is the link-local, MAC-based GID of RoCE v1: fe80:: and the modified EUI-64 of the MAC. A
// VLAN ID (1 to 4094) replaces ff:fe, as in IBA annex A16; vlan 0 means none.
func GIDFromMAC(mac [6]byte, vlan uint16) GID {
	g := GID{0xfe, 0x80, 8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3], 14: mac[4], 15: mac[5]}
	if vlan != 0 {
		g[11], g[12] = byte(vlan>>8)&0x0f, byte(vlan)
	}
	return g
}

// MAC returns the MAC and the VLAN ID (0: none) from which a MAC-based GID of RoCE v1 was made; ok is false for any other GID.
func (g GID) MAC() (mac [6]byte, vlan uint16, ok bool) {
	if vlan = uint16(g[11])<<8 | uint16(g[12]); vlan == 0xfffe {
		vlan = 0
	} else if vlan == 0 || vlan > 4094 {
		return mac, 0, false
	}
	mac = [6]byte{g[8] ^ 2, g[9], g[10], g[13], g[14], g[15]}
	return mac, vlan, g == GIDFromMAC(mac, vlan)
}

// Addr is the GID as an IP address, IPv4 if it is mapped.
func (g GID) Addr() netip.Addr { return netip.AddrFrom16(g).Unmap() }

// IsIPv4 reports whether g is IPv4-mapped.
func (g GID) IsIPv4() bool { return netip.AddrFrom16(g).Is4In6() }

// IsMulticast reports whether g is a multicast GID: ff00::/8, or a mapped IPv4 multicast address.
func (g GID) IsMulticast() bool { return g.Addr().IsMulticast() }

// IsZero reports whether g is the reserved GID.
func (g GID) IsZero() bool { return g == GID{} }

// String is the GID as eight unabbreviated groups, as the InfiniBand tools print it.
func (g GID) String() string { return netip.AddrFrom16(g).StringExpanded() }

package frame

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/wire/ib"
)

// InfiniBand holds a Route's fields for the headers of InfiniBand packets.
type InfiniBand struct {
	DLID       ib.LID // 0: the route is not of an InfiniBand port
	PathBits   uint8  // of the source LID
	SL         uint8
	Global     bool // packets have a GRH
	SGID, DGID ib.GID
}

// lidPrefix is that of the discard addresses (RFC 6666, 100::/64): no port has a GID with it.
var lidPrefix = [8]byte{0x01}

// LIDAddr returns an address that stands for a LID. Packets without a GRH identify their ends by LIDs
// alone, and to the engines, which compare addresses, all packets do.
func LIDAddr(l ib.LID) netip.Addr {
	var b [16]byte
	copy(b[:], lidPrefix[:])
	binary.BigEndian.PutUint16(b[14:], uint16(l))
	return netip.AddrFrom16(b)
}

// AddrLID returns the LID for which LIDAddr returned a; ok is false for any other address.
func AddrLID(a netip.Addr) (l ib.LID, ok bool) {
	if !a.Is6() || a.Is4In6() {
		return 0, false
	}
	b := a.As16()
	if [8]byte(b[:8]) != lidPrefix || [6]byte(b[8:14]) != ([6]byte{}) {
		return 0, false
	}
	return ib.LID(binary.BigEndian.Uint16(b[14:])), true
}

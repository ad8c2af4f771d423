package frame

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/wire/ib"
)

// InfiniBand is what a Route says in the headers of an InfiniBand packet.
type InfiniBand struct {
	DLID       ib.LID // 0: the route is not of an InfiniBand port
	PathBits   uint8  // of the source LID
	SL         uint8
	Global     bool // packets have a GRH
	SGID, DGID ib.GID
}

// lidPrefix is of the addresses that packets are discarded to (RFC 6666, 100::/64): no port has a GID of it.
var lidPrefix = [8]byte{0x01}

// LIDAddr is a LID in the place of an address. Packets without a GRH name their ends by LIDs alone, and so all
// do for the engines, which compare addresses.
func LIDAddr(l ib.LID) netip.Addr {
	var b [16]byte
	copy(b[:], lidPrefix[:])
	binary.BigEndian.PutUint16(b[14:], uint16(l))
	return netip.AddrFrom16(b)
}

// AddrLID is the LID that LIDAddr made an address of; ok is false for every other address.
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

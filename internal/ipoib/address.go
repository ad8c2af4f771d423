package ipoib

import (
	"encoding/binary"
	"fmt"

	"github.com/softvpi/softvpi/wire/ib"
)

// addressLen is the length of a link-layer address.
const addressLen = 20

// Flags of a link-layer address: the connected modes that its interface supports besides datagrams (RFC
// 4755 3.1).
const (
	flagRC = 0x80
	flagUC = 0x40
)

// Address is the link-layer address of an interface: its queue pair and the GID of its port (RFC 4391 9.1.1).
type Address struct {
	Flags uint8 // reserved in RFC 4391, connected modes in RFC 4755
	QPN   ib.QPN
	GID   ib.GID
}

// Append appends the address's addressLen bytes to b.
func (a Address) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(a.Flags)<<24|uint32(a.QPN&ib.QPNMask))
	return append(b, a.GID[:]...)
}

// parseAddress reads the address at the start of b. The error is a *formatError.
func parseAddress(b []byte) (Address, error) {
	if len(b) < addressLen {
		return Address{}, &formatError{"link-layer address", len(b), "20 bytes"}
	}
	w := binary.BigEndian.Uint32(b)
	return Address{Flags: uint8(w >> 24), QPN: ib.QPN(w) & ib.QPNMask, GID: ib.GID(b[4:addressLen])}, nil
}

// String returns the 20 bytes in hexadecimal with colons, like Linux.
func (a Address) String() string {
	var s []byte
	for i, c := range a.Append(nil) {
		if i > 0 {
			s = append(s, ':')
		}
		s = fmt.Appendf(s, "%02x", c)
	}
	return string(s)
}

// unicast reports whether packets can be sent to the address.
func (a Address) unicast() bool {
	return a.QPN > ib.QPGSI && a.QPN != ib.QPMulticast && !a.GID.IsZero() && a.GID[0] != 0xff
}

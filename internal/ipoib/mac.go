package ipoib

import (
	"math/bits"

	"github.com/softvpi/softvpi/wire/eth"
)

// defaultGUIDMask selects all bytes of the GUID except the two in the middle (WinOF 5.50, 4.6.7).
const defaultGUIDMask = 0xe7

// MAC returns the Ethernet address that a port's interface presents to systems that want one: the bytes of
// the port's GUID whose bits are set in mask, where the highest bit stands for the first byte (key
// GUIDMask). A mask that does not have exactly six bits set is replaced by the default one. The multicast
// bit is cleared.
func MAC(guid uint64, mask uint8) (m eth.MAC) {
	if bits.OnesCount8(mask) != len(m) {
		mask = defaultGUIDMask
	}
	n := 0
	for i := range 8 {
		if mask&(0x80>>i) != 0 {
			m[n] = byte(guid >> (56 - 8*i))
			n++
		}
	}
	m[0] &^= 1
	return m
}

package ipoib

import (
	"math/bits"

	"github.com/softvpi/softvpi/wire/eth"
)

// defaultGUIDMask takes all bytes of the GUID but the two in the middle (WinOF 5.50, 4.6.7).
const defaultGUIDMask = 0xe7

// MAC is the Ethernet address that the interface of a port shows to systems that want one: the bytes of the port's GUID whose
// bits are set in mask, the highest bit being that of the first byte (key GUIDMask). A mask that does not have six bits
// set is taken as the default one. The bit that would make it a group's address is cleared.
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

package ib

import "encoding/binary"

// vcrcPoly is the reflected polynomial x^16 + x^12 + x^3 + x + 1 of the variant CRC.
const vcrcPoly = 0xd008

var vcrcTable = func() (t [256]uint16) {
	for i := range t {
		c := uint16(i)
		for range 8 {
			c = c>>1 ^ vcrcPoly&-(c&1)
		}
		t[i] = c
	}
	return t
}()

// VCRC is the variant CRC (IBA 7.8.2) of a whole InfiniBand packet, from the LRH to the
// ICRC, nothing masked. Each hop checks and may rewrite it; RoCE has none.
func VCRC(packet []byte) uint16 {
	c := ^uint16(0)
	for _, b := range packet {
		c = c>>8 ^ vcrcTable[byte(c)^b]
	}
	return ^c
}

// PutVCRC writes a VCRC to the first two bytes of b, least significant byte first.
func PutVCRC(b []byte, crc uint16) { binary.LittleEndian.PutUint16(b, crc) }

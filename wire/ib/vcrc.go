package ib

import "encoding/binary"

// vcrcPoly is the reflected polynomial x^16 + x^12 + x^3 + x + 1 of the variant CRC.
const vcrcPoly = 0xd008

var vcrcTables = byteTables(func() (t [256]uint16) {
	for i := range t {
		c := uint16(i)
		for range 8 {
			c = c>>1 ^ vcrcPoly&-(c&1)
		}
		t[i] = c
	}
	return t
}())

// VCRCSeed is the initial running value of a variant CRC.
const VCRCSeed = ^uint16(0)

// VCRC is the variant CRC (IBA 7.8.2) of a whole InfiniBand packet, from the LRH to the ICRC, with nothing
// masked. Each hop checks and may rewrite it; RoCE has none.
func VCRC(packet []byte) uint16 { return ^VCRCUpdate(VCRCSeed, packet) }

// VCRCUpdate continues the running value over p, a piece of a packet. The variant CRC is the complement of
// the value after the last piece.
func VCRCUpdate(c uint16, p []byte) uint16 {
	if len(p) < foldLeast {
		return vcrcSlices(c, p)
	}
	return vcrcLong(c, p)
}

// vcrcSlices is VCRCUpdate using only tables.
func vcrcSlices(c uint16, p []byte) uint16 { return bySlices(vcrcTables, c, p) }

// PutVCRC writes a VCRC to the first two bytes of b, least significant byte first.
func PutVCRC(b []byte, crc uint16) { binary.LittleEndian.PutUint16(b, crc) }

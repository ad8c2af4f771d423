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

// vcrcTables is what each value of a byte adds when so many bytes follow it.
var vcrcTables = func() *[16][256]uint16 {
	t := &[16][256]uint16{vcrcTable}
	for i := 1; i < len(t); i++ {
		for v, before := range t[i-1] {
			t[i][v] = before>>8 ^ t[0][byte(before)]
		}
	}
	return t
}()

// VCRCSeed is where the running value of a variant CRC begins.
const VCRCSeed = ^uint16(0)

// VCRC is the variant CRC (IBA 7.8.2) of a whole InfiniBand packet, from the LRH to the
// ICRC, nothing masked. Each hop checks and may rewrite it; RoCE has none.
func VCRC(packet []byte) uint16 { return ^VCRCUpdate(VCRCSeed, packet) }

// VCRCUpdate continues the running value over p, a piece of a packet. The variant CRC is the complement of
// the value behind the last piece.
func VCRCUpdate(c uint16, p []byte) uint16 {
	if len(p) < foldLeast {
		return vcrcSlices(c, p)
	}
	return vcrcLong(c, p)
}

// vcrcSlices takes 16 bytes at a time, by tables.
func vcrcSlices(c uint16, p []byte) uint16 {
	t := vcrcTables
	for len(p) >= 16 {
		v, w := binary.LittleEndian.Uint64(p)^uint64(c), binary.LittleEndian.Uint64(p[8:])
		c = t[15][byte(v)] ^ t[14][byte(v>>8)] ^ t[13][byte(v>>16)] ^ t[12][byte(v>>24)] ^
			t[11][byte(v>>32)] ^ t[10][byte(v>>40)] ^ t[9][byte(v>>48)] ^ t[8][byte(v>>56)] ^
			t[7][byte(w)] ^ t[6][byte(w>>8)] ^ t[5][byte(w>>16)] ^ t[4][byte(w>>24)] ^
			t[3][byte(w>>32)] ^ t[2][byte(w>>40)] ^ t[1][byte(w>>48)] ^ t[0][byte(w>>56)]
		p = p[16:]
	}
	for _, b := range p {
		c = c>>8 ^ vcrcTable[byte(c)^b]
	}
	return c
}

// PutVCRC writes a VCRC to the first two bytes of b, least significant byte first.
func PutVCRC(b []byte, crc uint16) { binary.LittleEndian.PutUint16(b, crc) }

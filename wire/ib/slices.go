package ib

import "encoding/binary"

// Reflected CRCs of 16 or 32 bits are computed 16 bytes at a time, with a table for each distance from the
// end of the block: what each byte value contributes when so many bytes follow it.

// byteTables returns the tables of a CRC; first is the one for a byte that no other follows.
func byteTables[C uint16 | uint32](first [256]C) *[16][256]C {
	t := &[16][256]C{first}
	for i := 1; i < len(t); i++ {
		for v, before := range t[i-1] {
			t[i][v] = t[0][byte(before)] ^ before>>8
		}
	}
	return t
}

// bySlices continues a running value over p.
func bySlices[C uint16 | uint32](t *[16][256]C, c C, p []byte) C {
	for len(p) >= 16 {
		v, w := binary.LittleEndian.Uint64(p)^uint64(c), binary.LittleEndian.Uint64(p[8:])
		c = t[15][byte(v)] ^ t[14][byte(v>>8)] ^ t[13][byte(v>>16)] ^ t[12][byte(v>>24)] ^
			t[11][byte(v>>32)] ^ t[10][byte(v>>40)] ^ t[9][byte(v>>48)] ^ t[8][byte(v>>56)] ^
			t[7][byte(w)] ^ t[6][byte(w>>8)] ^ t[5][byte(w>>16)] ^ t[4][byte(w>>24)] ^
			t[3][byte(w>>32)] ^ t[2][byte(w>>40)] ^ t[1][byte(w>>48)] ^ t[0][byte(w>>56)]
		p = p[16:]
	}
	for _, b := range p {
		c = c>>8 ^ t[0][byte(c)^b]
	}
	return c
}

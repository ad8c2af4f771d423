package ib

import "math/bits"

// foldLeast is the minimum length that is folded: one round of four blocks and another block.
const foldLeast = 80

// A block of 16 bytes is a polynomial of degree below 128, and a CRC is the remainder of a polynomial as
// long as the packet. Carry-less multiplication folds four blocks at a time: a block followed by n bits
// can be replaced, at the position n bits further on, by its halves times x^(n+64) and x^n modulo the
// polynomial. The last block, then equivalent to everything folded into it, goes through the tables.
//
// foldFactors are the factors for a distance of 512 bits, then of 128. Bits are reflected, and the product
// of two reflected 64-bit words ends up one bit too low, so each factor is one power lower.
var foldFactors = [4]uint64{vcrcPower(512 + 63), vcrcPower(512 - 1), vcrcPower(128 + 63), vcrcPower(128 - 1)}

// vcrcPower is x^n modulo the polynomial of the variant CRC, as a reflected word: bit 63 is x^0.
func vcrcPower(n int) uint64 {
	const poly = 0x100b // x^12 + x^3 + x + 1, beside x^16
	r := uint32(1)
	for range n {
		if r <<= 1; r&0x10000 != 0 {
			r ^= 0x10000 | poly
		}
	}
	return bits.Reverse64(uint64(r))
}

// foldVCRC folds p, whose length is a multiple of 16 and at least 80, into one block. first is added to
// the beginning of p.
//
//go:noescape
func foldVCRC(block *[16]byte, p []byte, first uint64, factors *[4]uint64)

func vcrcLong(c uint16, p []byte) uint16 {
	if !multiplies {
		return vcrcSlices(c, p)
	}
	var block [16]byte
	n := len(p) &^ 15
	foldVCRC(&block, p[:n], uint64(c), &foldFactors)
	return vcrcSlices(vcrcSlices(0, block[:]), p[n:])
}

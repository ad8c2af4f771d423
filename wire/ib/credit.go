package ib

import "math/bits"

// CreditInvalid is the credit code of a responder that does not use end-to-end flow control; the requester
// then sends without a limit (IBA 9.7.7.2.1).
const CreditInvalid = 31

// creditCounts maps a credit code to a number of receives (IBA table "End-to-End Flow Control Credit Count").
var creditCounts = [32]uint32{
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 0,
}

// Credits is how many messages a credit code (0 to 31) allows. limited is false for CreditInvalid.
func Credits(code uint8) (n uint32, limited bool) {
	code &= 0x1f
	return creditCounts[code], code != CreditInvalid
}

// CreditCode is the largest code that promises at most n receives.
func CreditCode(n uint32) uint8 {
	switch {
	case n < 4:
		return uint8(n)
	case n >= 32768:
		return 30
	}
	// From 4 on there are two codes per octave: 2^k and 1.5 * 2^k.
	k := uint8(bits.Len32(n)) - 1
	return 2*k + uint8(n>>(k-1)&1)
}

package ib

import "math/bits"

// A UDP socket does not reveal the IPv4 identification of what it received, but the ICRC covers it. A CRC
// is linear: the ICRCs of two packets that differ only in the identification differ by a value that
// depends solely on that difference and on how many bytes follow it. So the difference of the ICRCs yields
// the identification if there is one: only 2^16 of the 2^32 differences correspond to one.
//
// Running a byte through the CRC multiplies its register by x^8 in the field of polynomials modulo the
// CRC's; going back n bytes multiplies by x^(-8n). The register is reflected: its top bit is x^0.

// crcPoly is the reflected Ethernet polynomial without x^32.
const crcPoly = 0xedb88320

// Steps back by 0 to 127 bytes, and by 0 to 511 times 128 bytes: any datagram length is the sum of one of
// each.
const (
	backLowBits  = 7
	backHighBits = 9
	maxBack      = 1<<(backLowBits+backHighBits) - 1
)

type backTable struct {
	low  [1 << backLowBits]uint32
	high [1 << backHighBits]uint32
}

var back = func() *backTable {
	t := new(backTable)
	one := uint32(1 << 31)
	byteBack := one
	for range 8 {
		// Divide by x: the reverse of a shift with reduction.
		if byteBack&(1<<31) != 0 {
			byteBack = (byteBack^crcPoly)<<1 | 1
		} else {
			byteBack <<= 1
		}
	}
	t.low[0], t.high[0] = one, one
	for i := 1; i < len(t.low); i++ {
		t.low[i] = crcMultiply(t.low[i-1], byteBack)
	}
	blockBack := crcMultiply(t.low[len(t.low)-1], byteBack)
	for i := 1; i < len(t.high); i++ {
		t.high[i] = crcMultiply(t.high[i-1], blockBack)
	}
	return t
}()

// crcMultiply multiplies two reflected polynomials modulo the CRC's, without branches on the data.
func crcMultiply(a, b uint32) uint32 {
	var p uint32
	for a != 0 {
		p ^= b & uint32(int32(a)>>31)
		a <<= 1
		b = b>>1 ^ crcPoly&-(b&1)
	}
	return p
}

// SolveID finds the IPv4 identification for which a packet's ICRC is correct. computed is the ICRC with
// identification 0, wire the one in the packet, and bytesAfterIDField how many bytes covered by the ICRC
// follow the identification: the other 14 of a 20-byte IPv4 header, the UDP header, BTH and the rest up to
// the ICRC. ok is false if no identification fits: the packet is corrupt. (A corrupt packet passes with
// probability 2^-16.) If computed was made with another identification, the result is the exclusive or of
// that and the packet's.
func SolveID(computed, wire uint32, bytesAfterIDField int) (id uint16, ok bool) {
	n := uint(bytesAfterIDField) + 2
	if n > maxBack {
		return 0, false
	}
	d := computed ^ wire
	d = crcMultiply(back.low[n&(1<<backLowBits-1)], d)
	d = crcMultiply(back.high[n>>backLowBits], d)
	return bits.ReverseBytes16(uint16(d)), d>>16 == 0
}

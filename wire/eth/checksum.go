package eth

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// sum adds p to a running Internet checksum (RFC 1071), kept as a 64-bit ones' complement sum. Only the
// last piece of a packet may have an odd length.
func sum(s uint64, p []byte) uint64 {
	for len(p) >= 8 {
		var carry uint64
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(p), 0)
		s += carry
		p = p[8:]
	}
	var last [8]byte
	copy(last[:], p)
	s, carry := bits.Add64(s, binary.BigEndian.Uint64(last[:]), 0)
	return s + carry
}

// fold reduces a sum to the 16-bit checksum.
func fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return ^uint16(s)
}

// Checksum is the Internet checksum of p (RFC 1071): 0 if p contains a correct one.
func Checksum(p []byte) uint16 { return fold(sum(0, p)) }

// PseudoChecksum is the checksum of an IP payload with the pseudo header of its addresses (RFC 768, RFC
// 8200 8.1), as used by UDP and ICMPv6. The addresses must be of the same family.
func PseudoChecksum(src, dst netip.Addr, protocol uint8, payload []byte) uint16 {
	return fold(sum(pseudo(src, dst, protocol, len(payload)), payload))
}

// PseudoSum is the part of the pseudo header of a payload of n bytes in its checksum: what a device that completes the
// checksum expects in its field (RFC 1624 writes it ~C).
func PseudoSum(src, dst netip.Addr, protocol uint8, n int) uint16 {
	return ^fold(pseudo(src, dst, protocol, n))
}

// pseudo sums a pseudo header. Its fields need not be in their exact positions: the sum only matters modulo 2^16-1.
func pseudo(src, dst netip.Addr, protocol uint8, n int) uint64 {
	var s uint64
	if src.Is4() {
		a, b := src.As4(), dst.As4()
		s = uint64(binary.BigEndian.Uint32(a[:])) + uint64(binary.BigEndian.Uint32(b[:]))
	} else {
		a, b := src.As16(), dst.As16()
		s = sum(sum(0, a[:]), b[:])
	}
	s, carry := bits.Add64(s, uint64(protocol)+uint64(n), 0)
	return s + carry
}

package ib

import "golang.org/x/sys/cpu"

// The ICRC is folded like the variant CRC (vcrc_amd64.go), with a polynomial of 32 bits, four blocks of 16
// bytes at a time, or four of 64 if the processor has vectors of that length. The bytes are stored from
// the registers in which they are folded. Both the source and the destination are prefetched 2,048 bytes
// ahead, also beyond the end, where the next packet of a message begins: the processor's own prefetching
// stops at the end of the page, and most of the time is spent waiting for memory.

// copyRound is how many bytes one round handles.
const copyRound = 64

// copyFactors are powers of x modulo the polynomial of the CRC-32, reflected: for a distance of 512 bits,
// of 128 and of 64; the factor of the 64-bit reduction, the polynomial and its reciprocal; a mask of the
// lower half of 64 bits; and the powers for a distance of 2,048 bits.
var copyFactors = [12]uint64{0x154442bd4, 0x1c6e41596, 0x1751997d0, 0xccaa009e, 0x163cd6124, 0, 0x1db710641, 0x1f7011641, 0xffffffff, 0,
	0x11542778a, 0x1322d1430}

// CopiesICRC tells whether ICRCCopy is faster than a copy and a separate ICRC.
var CopiesICRC = multiplies

// wide tells whether the processor has carry-less multiplication of 64-byte vectors.
var wide = multiplies && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ

// foldCopy copies src, whose length is a positive multiple of copyRound, to dst, and returns the register
// of the CRC, which starts as first.
//
//go:noescape
func foldCopy(dst *byte, src []byte, first uint32, factors *[12]uint64) uint32

//go:noescape
func foldCopyWide(dst *byte, src []byte, first uint32, factors *[12]uint64) uint32

// ICRCCopy continues the ICRC over src like ICRCUpdate and in the same pass copies it to the beginning of
// dst, which must be at least as long.
func ICRCCopy(crc uint32, dst, src []byte) uint32 {
	n := len(src) &^ (copyRound - 1)
	if n > 0 && CopiesICRC {
		dst = dst[:len(src)]
		if wide {
			crc = ^foldCopyWide(&dst[0], src[:n], ^crc, &copyFactors)
		} else {
			crc = ^foldCopy(&dst[0], src[:n], ^crc, &copyFactors)
		}
		dst, src = dst[n:], src[n:]
	}
	if len(src) == 0 {
		return crc
	}
	copy(dst, src)
	return ICRCUpdate(crc, src)
}

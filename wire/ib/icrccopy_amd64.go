package ib

import "golang.org/x/sys/cpu"

// The ICRC is folded as the variant CRC is (vcrc_amd64.go), with a polynomial of 32 bits, four blocks of 16 bytes at a time, or
// four of 64 where the processor has vectors of that length. The bytes are stored from the registers that they are folded in. Both the source and the destination
// are asked for 2,048 bytes ahead, beyond the end too, where the next packet of a message begins: a
// processor's own look ahead ends with the page, and most of the time goes into waiting for memory.

// copyRound is how many bytes one round takes.
const copyRound = 64

// copyFactors are powers of x modulo the polynomial of the CRC-32, reflected: of 512 bits further on, of 128 and of 64; what the
// reduction of 64 bits multiplies by, the polynomial and its reciprocal; the lower half of 64 bits; and those of 2,048 bits further on.
var copyFactors = [12]uint64{0x154442bd4, 0x1c6e41596, 0x1751997d0, 0xccaa009e, 0x163cd6124, 0, 0x1db710641, 0x1f7011641, 0xffffffff, 0, 0x11542778a, 0x1322d1430}

// CopiesICRC says whether ICRCCopy is faster than a copy and an ICRC.
var CopiesICRC = multiplies

// wide says that there are carry-less multiplications of vectors of 64 bytes.
var wide = multiplies && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ

// foldCopy copies src, whose length is a multiple of copyRound and not 0, to dst, and returns what the CRC's register first
// becomes by it.
//
//go:noescape
func foldCopy(dst *byte, src []byte, first uint32, factors *[12]uint64) uint32

//go:noescape
func foldCopyWide(dst *byte, src []byte, first uint32, factors *[12]uint64) uint32

// ICRCCopy continues the ICRC over src as ICRCUpdate does, and copies it to the beginning of dst, which is at
// least as long, in the same go.
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

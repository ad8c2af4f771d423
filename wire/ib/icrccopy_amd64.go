package ib

// The ICRC is folded as the variant CRC is (vcrc_amd64.go), four blocks of 16 bytes at a time, with a polynomial of
// 32 bits. The bytes are stored from the registers that they are folded in. Both the source and the destination
// are asked for 2,048 bytes ahead, beyond the end too, where the next packet of a message begins: a
// processor's own look ahead ends with the page, and most of the time goes into waiting for memory.

// copyRound is how many bytes one round takes.
const copyRound = 64

// copyFactors are x^n modulo the polynomial of the CRC-32, reflected, for 512 bits further on and for 128.
var copyFactors = [4]uint64{0x154442bd4, 0x1c6e41596, 0x1751997d0, 0xccaa009e}

// CopiesICRC says whether ICRCCopy is faster than a copy and an ICRC.
var CopiesICRC = multiplies

// foldCopy copies src, whose length is a multiple of copyRound and not 0, to dst, and makes one block
// of it. first is added to the beginning of src in the block, not in the copy.
//
//go:noescape
func foldCopy(block *[16]byte, dst *byte, src []byte, first uint32, factors *[4]uint64)

// ICRCCopy continues the ICRC over src as ICRCUpdate does, and copies it to the beginning of dst, which is at
// least as long, in the same go.
func ICRCCopy(crc uint32, dst, src []byte) uint32 {
	n := len(src) &^ (copyRound - 1)
	if n > 0 && CopiesICRC {
		var block [16]byte
		dst = dst[:len(src)]
		foldCopy(&block, &dst[0], src[:n], ^crc, &copyFactors)
		crc = ^uint32(0)
		for i := 0; i < len(block); i += 4 {
			crc = ICRCWord(crc, block[i:])
		}
		dst, src = dst[n:], src[n:]
	}
	copy(dst, src)
	return ICRCUpdate(crc, src)
}

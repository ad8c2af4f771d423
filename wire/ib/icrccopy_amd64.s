#include "fold_amd64.h"
#include "textflag.h"

// func foldCopy(block *[16]byte, dst *byte, src []byte, first uint32, factors *[4]uint64)
// Copies src to dst, and makes one block of 16 bytes that is worth as much as all of it (see icrccopy_amd64.go).
TEXT ·foldCopy(SB), NOSPLIT, $0-56
	MOVQ block+0(FP), BX
	MOVQ dst+8(FP), DI
	MOVQ src_base+16(FP), SI
	MOVQ src_len+24(FP), CX
	MOVL first+40(FP), AX
	MOVQ factors+48(FP), DX
	MOVQ AX, X8
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	MOVOU X0, (DI)
	MOVOU X1, 16(DI)
	MOVOU X2, 32(DI)
	MOVOU X3, 48(DI)
	PXOR  X8, X0
	ADDQ  $64, SI
	ADDQ  $64, DI
	SUBQ  $64, CX
	MOVOU (DX), X9
	MOVOU 16(DX), X10
	CMPQ  CX, $64
	JLT   join

fold:
	PREFETCHT0 2048(SI)
	BYTE $0x0f; BYTE $0x0d; BYTE $0x8f; LONG $2048 // PREFETCHW 2048(DI); processors without it do nothing
	FOLD
	LOAD
	MOVOU X4, (DI)
	MOVOU X5, 16(DI)
	MOVOU X6, 32(DI)
	MOVOU X7, 48(DI)
	ADD
	ADDQ  $64, SI
	ADDQ  $64, DI
	SUBQ  $64, CX
	CMPQ  CX, $64
	JGE   fold

join:
	JOIN
	MOVOU X3, (BX)
	RET

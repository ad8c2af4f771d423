#include "fold_amd64.h"
#include "fold_icrc_amd64.h"
#include "textflag.h"

// func foldCopy(dst *byte, src []byte, first uint32, factors *[12]uint64) uint32
// Copies src to dst, and returns what the register first becomes (see icrccopy_amd64.go).
TEXT ·foldCopy(SB), NOSPLIT, $0-52
	MOVQ dst+0(FP), DI
	MOVQ src_base+8(FP), SI
	MOVQ src_len+16(FP), CX
	MOVL first+32(FP), AX
	MOVQ factors+40(FP), DX
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
	ASK(0)
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
	REDUCE
	MOVL AX, ret+48(FP)
	RET

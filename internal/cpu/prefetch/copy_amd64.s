#include "textflag.h"

// func rounds(dst, src *byte, n int, far uintptr)
TEXT ·rounds(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ far+24(FP), R8
	ADDQ DI, R8

round:
	BYTE $0x41; BYTE $0x0f; BYTE $0x0d; BYTE $0x08 // PREFETCHW (R8); processors without it do nothing
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	MOVOU X0, (DI)
	MOVOU X1, 16(DI)
	MOVOU X2, 32(DI)
	MOVOU X3, 48(DI)
	ADDQ  $64, SI
	ADDQ  $64, DI
	ADDQ  $64, R8
	SUBQ  $64, CX
	JNE   round
	RET

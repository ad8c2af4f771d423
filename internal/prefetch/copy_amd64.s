#include "textflag.h"

// func rounds(dst, src *byte, n int)
TEXT ·rounds(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

round:
	BYTE $0x0f; BYTE $0x0d; BYTE $0x8f; LONG $2048 // PREFETCHW 2048(DI); processors without it do nothing
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
	SUBQ  $64, CX
	JNE   round
	RET

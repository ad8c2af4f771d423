#include "fold_amd64.h"
#include "fold_icrc_amd64.h"
#include "textflag.h"

// BLOCK carries the 64 bytes in z over as many as the factors in Z9 are for, and adds those at SI+at, which it copies. Z4 and Z5 are used.
#define BLOCK(at, z) \
	VPCLMULQDQ $0x00, Z9, z, Z4; \
	VPCLMULQDQ $0x11, Z9, z, z; \
	VMOVDQU64 at(SI), Z5; \
	VMOVDQU64 Z5, at(DI); \
	VPTERNLOGQ $0x96, Z5, Z4, z

// ONTO carries the 64 bytes in z over the 64 in behind, and adds them there.
#define ONTO(z, behind) \
	VPCLMULQDQ $0x00, Z9, z, Z4; \
	VPCLMULQDQ $0x11, Z9, z, z; \
	VPTERNLOGQ $0x96, Z4, z, behind

// AHEAD asks for the 256 bytes of both sides that come 2,048 bytes behind.
#define AHEAD \
	PREFETCHT0 2048(SI); \
	PREFETCHT0 2112(SI); \
	PREFETCHT0 2176(SI); \
	PREFETCHT0 2240(SI); \
	ASK(0); \
	ASK(64); \
	ASK(128); \
	ASK(192)

// func foldCopyWide(dst *byte, src []byte, first uint32, factors *[12]uint64) uint32
// foldCopy with vectors of 64 bytes, four at a time.
TEXT ·foldCopyWide(SB), NOSPLIT, $0-52
	MOVQ dst+0(FP), DI
	MOVQ src_base+8(FP), SI
	MOVQ src_len+16(FP), CX
	MOVL first+32(FP), AX
	MOVQ factors+40(FP), DX
	VMOVD AX, X8
	VMOVDQU64 (SI), Z0
	VMOVDQU64 Z0, (DI)
	VPXORQ Z8, Z0, Z0
	CMPQ CX, $256
	JLT  few
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VMOVDQU64 Z1, 64(DI)
	VMOVDQU64 Z2, 128(DI)
	VMOVDQU64 Z3, 192(DI)
	AHEAD
	VBROADCASTI32X4 80(DX), Z9
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	CMPQ CX, $256
	JLT  four

round:
	AHEAD
	BLOCK(0, Z0)
	BLOCK(64, Z1)
	BLOCK(128, Z2)
	BLOCK(192, Z3)
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	CMPQ CX, $256
	JGE  round

four:
	VBROADCASTI32X4 (DX), Z9
	ONTO(Z0, Z1)
	ONTO(Z1, Z2)
	ONTO(Z2, Z3)
	VMOVDQA64 Z3, Z0
	JMP rest

few:
	VBROADCASTI32X4 (DX), Z9
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $64, CX

rest:
	CMPQ CX, $64
	JLT  lanes
	BLOCK(0, Z0)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $64, CX
	JMP  rest

lanes:
	VEXTRACTI32X4 $3, Z0, X3
	VEXTRACTI32X4 $2, Z0, X2
	VEXTRACTI32X4 $1, Z0, X1
	VZEROUPPER
	MOVOU 16(DX), X10
	JOIN
	REDUCE
	MOVL AX, ret+48(FP)
	RET

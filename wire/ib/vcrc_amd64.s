#include "fold_amd64.h"
#include "textflag.h"

// func foldVCRC(block *[16]byte, p []byte, first uint64, factors *[4]uint64)
// One block of 16 bytes that is worth as much as all of p (see vcrc_amd64.go).
TEXT ·foldVCRC(SB), NOSPLIT, $0-48
	MOVQ block+0(FP), DI
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX
	MOVQ first+32(FP), AX
	MOVQ factors+40(FP), DX
	MOVQ AX, X8
	MOVOU (SI), X0
	PXOR  X8, X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	ADDQ $64, SI
	SUBQ $64, CX
	MOVOU (DX), X9
	MOVOU 16(DX), X10
	CMPQ CX, $64
	JLT  join

fold:
	FOLD
	LOAD
	ADD
	ADDQ $64, SI
	SUBQ $64, CX
	CMPQ CX, $64
	JGE  fold

join:
	JOIN

rest:
	CMPQ CX, $16
	JLT  done
	MOVOA X3, X4
	PCLMULQDQ $0x00, X10, X3
	PCLMULQDQ $0x11, X10, X4
	PXOR X4, X3
	MOVOU (SI), X4
	PXOR X4, X3
	ADDQ $16, SI
	SUBQ $16, CX
	JMP  rest

done:
	MOVOU X3, (DI)
	RET

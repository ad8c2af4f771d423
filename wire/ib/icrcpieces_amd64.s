#include "fold_amd64.h"
#include "textflag.h"

// func foldPieces(first *byte, blocks int, then *byte, more int, state uint32, factors *[6]uint64) uint32
// The state of the CRC-32 behind blocks of 16 bytes at first, one at least, and more at then (see icrcpieces_amd64.go).
TEXT ·foldPieces(SB), NOSPLIT, $0-52
	MOVQ  first+0(FP), SI
	MOVQ  blocks+8(FP), CX
	MOVQ  then+16(FP), DI
	MOVQ  more+24(FP), BX
	MOVL  state+32(FP), AX
	MOVQ  factors+40(FP), DX
	MOVQ  AX, X8
	MOVOU (DX), X10
	MOVOU (SI), X0
	PXOR  X8, X0

first:
	DECQ  CX
	JZ    second
	ADDQ  $16, SI
	MOVOU (SI), X3
	CARRY(X0, X3)
	MOVOA X3, X0
	JMP   first

second:
	TESTQ BX, BX
	JZ    reduce
	MOVOU (DI), X3
	CARRY(X0, X3)
	MOVOA X3, X0
	ADDQ  $16, DI
	DECQ  BX
	JMP   second

reduce:
	// 128 bits to 96 and to 64, and those by Barrett to 32.
	MOVOA     X0, X1
	PSRLDQ    $8, X1
	PCLMULQDQ $0x10, X10, X0
	PXOR      X0, X1
	MOVOU     16(DX), X5
	PCMPEQB   X6, X6
	PSRLQ     $32, X6
	MOVOA     X1, X2
	PSRLDQ    $4, X2
	PAND      X6, X1
	PCLMULQDQ $0x00, X5, X1
	PXOR      X2, X1
	MOVOU     32(DX), X5
	MOVOA     X1, X2
	PAND      X6, X1
	PCLMULQDQ $0x10, X5, X1
	PAND      X6, X1
	PCLMULQDQ $0x00, X5, X1
	PXOR      X2, X1
	PEXTRD    $1, X1, AX
	MOVL      AX, ret+48(FP)
	RET

// What comes before and behind the folding of an ICRC: see icrccopy_amd64.go.

// ASK asks for the line 2,048 bytes and n behind DI to write to it: PREFETCHW 2048+n(DI), with which processors without it do nothing.
#define ASK(n) BYTE $0x0f; BYTE $0x0d; BYTE $0x8f; LONG $(2048+n)

// REDUCE makes 32 bits in AX of the 16 bytes in X3, with the factors at DX: they and 32 bits of zeros behind
// them become 96, those 64, and the rest is Barrett's reduction. X0, X2 and X4 are used.
#define REDUCE \
	MOVOU 64(DX), X4; \
	MOVOU 16(DX), X0; \
	PCLMULQDQ $0x01, X3, X0; \
	PSRLO $8, X3; \
	PXOR X0, X3; \
	MOVOA X3, X2; \
	PSRLO $4, X2; \
	PAND X4, X3; \
	MOVOU 32(DX), X0; \
	PCLMULQDQ $0x00, X0, X3; \
	PXOR X2, X3; \
	MOVOA X3, X2; \
	PAND X4, X3; \
	MOVOU 48(DX), X0; \
	PCLMULQDQ $0x10, X0, X3; \
	PAND X4, X3; \
	PCLMULQDQ $0x00, X0, X3; \
	PXOR X2, X3; \
	PEXTRD $1, X3, AX

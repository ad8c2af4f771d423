// What the CRCs of packets fold by: four blocks of 16 bytes in X0 to X3 at a time, with the factors for 64 bytes in X9 and those for 16 in X10.
// X4 to X7 are used. See vcrc_amd64.go.

// FOLD carries the four blocks over 64 bytes.
#define FOLD \
	MOVOA X0, X4; \
	MOVOA X1, X5; \
	MOVOA X2, X6; \
	MOVOA X3, X7; \
	PCLMULQDQ $0x00, X9, X0; \
	PCLMULQDQ $0x00, X9, X1; \
	PCLMULQDQ $0x00, X9, X2; \
	PCLMULQDQ $0x00, X9, X3; \
	PCLMULQDQ $0x11, X9, X4; \
	PCLMULQDQ $0x11, X9, X5; \
	PCLMULQDQ $0x11, X9, X6; \
	PCLMULQDQ $0x11, X9, X7; \
	PXOR X4, X0; \
	PXOR X5, X1; \
	PXOR X6, X2; \
	PXOR X7, X3

// LOAD reads the next 64 bytes at SI to X4 to X7.
#define LOAD \
	MOVOU (SI), X4; \
	MOVOU 16(SI), X5; \
	MOVOU 32(SI), X6; \
	MOVOU 48(SI), X7

// ADD adds what LOAD has read.
#define ADD \
	PXOR X4, X0; \
	PXOR X5, X1; \
	PXOR X6, X2; \
	PXOR X7, X3

// CARRY carries one block over 16 bytes and adds it to another.
#define CARRY(from, to) \
	MOVOA from, X4; \
	PCLMULQDQ $0x00, X10, from; \
	PCLMULQDQ $0x11, X10, X4; \
	PXOR X4, to; \
	PXOR from, to

// JOIN has X3 be worth as much as all four.
#define JOIN \
	CARRY(X0, X1); \
	CARRY(X1, X2); \
	CARRY(X2, X3)

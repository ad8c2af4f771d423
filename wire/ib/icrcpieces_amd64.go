package ib

// pieceFactors are those of copyFactors for 128 bits further on, x^64 modulo the polynomial, reflected, for
// the way from 96 bits to 64, and the polynomial and its inverse for that from 64 to 32.
var pieceFactors = [6]uint64{0x1751997d0, 0xccaa009e, 0x163cd6124, 0, 0x1db710641, 0x1f7011641}

// foldPieces returns the state of the CRC, which is what crc32.Update takes and returns with its bits inverted, behind
// blocks of 16 bytes, 1 at least, and more of them elsewhere.
//
//go:noescape
func foldPieces(first *byte, blocks int, then *byte, more int, state uint32, factors *[6]uint64) uint32

// pieceBlock is what foldPieces takes at a time.
const pieceBlock = 16

// ICRCPieces continues the ICRC over headers and the payload behind them as two calls of ICRCUpdate do. Of short packets it
// costs less: both go through one reduction.
func ICRCPieces(crc uint32, headers, payload []byte) uint32 {
	if !multiplies || len(headers) == 0 || len(headers)%pieceBlock != 0 || len(payload) > shortPiece {
		return ICRCUpdate(ICRCUpdate(crc, headers), payload)
	}
	n, then := len(payload)&^(pieceBlock-1), &headers[0]
	if n > 0 {
		then = &payload[0]
	}
	crc = ^foldPieces(&headers[0], len(headers)/pieceBlock, then, n/pieceBlock, ^crc, &pieceFactors)
	return icrcWords(crc, payload[n:])
}

// icrcShort continues the ICRC over up to shortPiece bytes.
func icrcShort(crc uint32, p []byte) uint32 {
	n := len(p) &^ (pieceBlock - 1)
	if n > 0 {
		crc = ^foldPieces(&p[0], n/pieceBlock, &p[0], 0, ^crc, &pieceFactors)
	}
	return icrcWords(crc, p[n:])
}

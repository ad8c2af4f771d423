package ib

// pieceFactors are those of copyFactors for a distance of 128 bits, then x^64 modulo the polynomial,
// reflected, for the reduction from 96 bits to 64, and the polynomial and its inverse for that from 64 to
// 32.
var pieceFactors = [6]uint64{0x1751997d0, 0xccaa009e, 0x163cd6124, 0, 0x1db710641, 0x1f7011641}

// foldPieces returns the state of the CRC (the value of crc32.Update with its bits inverted) after blocks
// of 16 bytes, at least one, at first and more blocks at then.
//
//go:noescape
func foldPieces(first *byte, blocks int, then *byte, more int, state uint32, factors *[6]uint64) uint32

// pieceBlock is the number of bytes that foldPieces folds at a time.
const pieceBlock = 16

// ICRCPieces continues the ICRC over headers and then the payload, as two calls of ICRCUpdate do. For
// short packets it is cheaper, because both share one reduction.
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

//go:build !amd64

package ib

// CopiesICRC tells whether ICRCCopy is faster than a copy and a separate ICRC.
const CopiesICRC = false

// ICRCCopy continues the ICRC over src like ICRCUpdate and copies it to the beginning of dst, which must
// be at least as long.
func ICRCCopy(crc uint32, dst, src []byte) uint32 {
	copy(dst, src)
	return ICRCUpdate(crc, src)
}

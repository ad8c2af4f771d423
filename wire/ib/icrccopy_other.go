//go:build !amd64

package ib

// CopiesICRC says whether ICRCCopy is faster than a copy and an ICRC.
const CopiesICRC = false

// ICRCCopy continues the ICRC over src as ICRCUpdate does, and copies it to the beginning of dst, which is at
// least as long.
func ICRCCopy(crc uint32, dst, src []byte) uint32 {
	copy(dst, src)
	return ICRCUpdate(crc, src)
}

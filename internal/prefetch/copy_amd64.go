package prefetch

import "unsafe"

const (
	// round is how many bytes one round of a copy takes.
	round = 64
	// ahead is how far ahead of itself a copy asks for its destination.
	ahead = 2048
)

// rounds copies n bytes, a multiple of round and not 0, and asks for as many that begin so far behind dst.
//
//go:noescape
func rounds(dst, src *byte, n int, far uintptr)

// Copy copies src, which is near, to the beginning of dst, which is far, at least as long, and does not overlap it. It asks for
// the destination 2,048 bytes ahead, beyond its end too: that is for pieces of a message that go one behind the
// other. A processor's own look ahead ends with each page.
func Copy(dst, src []byte) {
	n := len(src) &^ (round - 1)
	if n > 0 {
		dst = dst[:len(src)]
		rounds(&dst[0], &src[0], n, ahead)
	}
	copy(dst[n:], src[n:])
}

// CopyBefore is Copy of what is followed by a copy to the address next, which need not exist: it asks for that in place of
// what lies behind the end of dst.
func CopyBefore(dst, src []byte, next uintptr) {
	n := len(src) &^ (round - 1)
	own := max(n-ahead, 0)
	dst = dst[:len(src)]
	if own > 0 {
		rounds(&dst[0], &src[0], own, ahead)
	}
	if n > own {
		rounds(&dst[own], &src[own], n-own, next-uintptr(unsafe.Pointer(&dst[own])))
	}
	copy(dst[n:], src[n:])
}

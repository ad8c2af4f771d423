package prefetch

import "unsafe"

const (
	// round is how many bytes one round of a copy handles.
	round = 64
	// ahead is how far ahead a copy prefetches its destination.
	ahead = 2048
)

// rounds copies n bytes, a positive multiple of round, and prefetches as many that begin far bytes behind
// dst.
//
//go:noescape
func rounds(dst, src *byte, n int, far uintptr)

// Copy copies src, which is in a near cache, to the beginning of dst, which is not, must be at least as
// long, and must not overlap it. It prefetches the destination 2,048 bytes ahead, also beyond its end, for
// consecutive pieces of a message. The processor's own prefetching stops at the end of each page.
func Copy(dst, src []byte) {
	n := len(src) &^ (round - 1)
	if n > 0 {
		dst = dst[:len(src)]
		rounds(&dst[0], &src[0], n, ahead)
	}
	copy(dst[n:], src[n:])
}

// CopyBefore is Copy with a prediction that the next copy will be to the address next, which need not be
// valid: it prefetches that instead of what is behind the end of dst.
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

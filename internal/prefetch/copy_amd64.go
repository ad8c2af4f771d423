package prefetch

// round is how many bytes one round of a copy takes.
const round = 64

// rounds copies n bytes, a multiple of round and not 0.
//
//go:noescape
func rounds(dst, src *byte, n int)

// Copy copies src, which is near, to the beginning of dst, which is far, at least as long, and does not overlap it. It asks for
// the destination 2,048 bytes ahead, beyond its end too: that is for pieces of a message that go one behind the
// other. A processor's own look ahead ends with each page.
func Copy(dst, src []byte) {
	n := len(src) &^ (round - 1)
	if n > 0 {
		dst = dst[:len(src)]
		rounds(&dst[0], &src[0], n)
	}
	copy(dst[n:], src[n:])
}

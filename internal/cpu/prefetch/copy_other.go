//go:build !amd64

package prefetch

// Copy copies src to the beginning of dst, which must be at least as long.
func Copy(dst, src []byte) { copy(dst[:len(src)], src) }

// CopyBefore copies src to the beginning of dst, which must be at least as long.
func CopyBefore(dst, src []byte, next uintptr) { Copy(dst, src) }

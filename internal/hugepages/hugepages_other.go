//go:build !linux

package hugepages

// Prefer asks for large pages; this system is not asked.
func Prefer([]byte) {}

// Gather asks for large pages; this system is not asked.
func Gather(base, length uint64) {}

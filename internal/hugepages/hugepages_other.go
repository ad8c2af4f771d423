//go:build !linux

package hugepages

// Prefer does nothing on this system.
func Prefer([]byte) {}

// Gather asks for large pages; this system is not asked.
func Gather(base, length uint64) {}

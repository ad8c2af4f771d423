//go:build !linux

package hugepages

import "time"

// Prefer does nothing on this system.
func Prefer([]byte) {}

// Gather asks for large pages; this system is not asked.
func Gather(_, length uint64, _ time.Duration) (done uint64) { return length }

// GatherHeap asks for large pages for Go's heap; this system is not asked.
func GatherHeap(time.Duration) (all bool) { return true }

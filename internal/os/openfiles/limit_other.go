//go:build !unix

package openfiles

// Limit returns how many descriptors this process may have: this system sets no limit.
func Limit() uint64 { return noLimit }

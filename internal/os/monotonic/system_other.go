//go:build !linux

package monotonic

func system() uint64 { return 0 }

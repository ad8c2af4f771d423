//go:build !linux

package monotonic

// counted is about Linux: elsewhere no other process reads the same clock.
func counted() bool { return false }

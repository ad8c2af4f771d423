package monotonic

import "golang.org/x/sys/unix"

// system reads the clock with a system call.
func system() uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail
	return uint64(ts.Nano())
}

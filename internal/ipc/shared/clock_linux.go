package shared

import "golang.org/x/sys/unix"

// Now reads CLOCK_MONOTONIC, in nanoseconds: the time that all processes of a machine share.
func Now() uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail
	return uint64(ts.Nano())
}

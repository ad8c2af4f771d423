//go:build unix

package ndperf

import (
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime returns the processor time, user and system, of this process.
func ProcessorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

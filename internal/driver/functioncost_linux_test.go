package driver

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// busy returns which part of a processor the process uses in a time in which nobody asks for anything.
func busy(t testing.TB, during time.Duration) float64 {
	t.Helper()
	used := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	time.Sleep(during)
	return (used() - before).Seconds() / during.Seconds()
}

// Package monotonic reads the clock that all processes of a machine share: CLOCK_MONOTONIC on Linux. Elsewhere it
// counts from the start of the process, since no other process is attached.
package monotonic

import "time"

var (
	base = time.Now()
	zero = atBase()
)

// Now returns the clock in nanoseconds.
func Now() uint64 { return zero + uint64(time.Since(base)) }

// At returns the clock at t, which has a reading of the monotonic clock.
func At(t time.Time) uint64 { return zero + uint64(t.Sub(base)) }

// atBase returns the clock at base: of several readings the one that took the least time between two of Go's own.
func atBase() (at uint64) {
	for i, shortest := 0, time.Duration(0); i < 32; i++ {
		before := time.Since(base)
		now := system()
		after := time.Since(base)
		if took := after - before; i == 0 || took < shortest {
			at, shortest = now-uint64(before+took/2), took
		}
	}
	return at
}

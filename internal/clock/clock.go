// Package clock defines the time passed to the engines. An engine never reads a clock: its driver passes
// the time in, so that the same code runs on a socket, under a scripted clock and in a simulation.
package clock

import "time"

// Time is a moment in nanoseconds since an origin chosen by the driver of the engines. It never goes
// backwards within one driver.
type Time int64

// Never is the deadline of an engine that waits for nothing.
const Never Time = 1<<63 - 1

// Add returns the moment d after t, or Never if that would overflow.
func (t Time) Add(d time.Duration) Time {
	if d > 0 && t > Never-Time(d) {
		return Never
	}
	return t + Time(d)
}

// Sub returns the time that passed from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Before reports whether t comes before u.
func (t Time) Before(u Time) bool { return t < u }

// Min returns the earlier of two moments.
func Min(a, b Time) Time {
	if a < b {
		return a
	}
	return b
}

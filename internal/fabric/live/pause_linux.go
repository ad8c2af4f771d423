package live

import (
	"time"

	"golang.org/x/sys/unix"
)

// fine is the shortest time that a timer of the runtime keeps, when nothing else keeps a thread awake. What is shorter is slept through
// in pieces from shortest to longest.
const (
	fine     = 2 * time.Millisecond
	shortest = 50 * time.Microsecond
	longest  = 200 * time.Microsecond
)

// pause sets a timer, or passes a time that is too short for one, or a part of it: timers of the runtime are late by up to a
// millisecond. What becomes due earlier meanwhile is late by longest at most.
func pause(t *time.Timer, d time.Duration) {
	if d > 0 && d < fine {
		ts := unix.NsecToTimespec(int64(min(max(d, shortest), longest)))
		_ = unix.Nanosleep(&ts, nil) // a signal ends it early, which does no harm
		d = 0
	}
	t.Reset(d)
}

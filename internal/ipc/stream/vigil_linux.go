package stream

import (
	"runtime"
	"time"

	"github.com/softvpi/softvpi/internal/ipc/shared"
)

const (
	// vigilTime is how long one side polls an empty track before it sleeps, the same as for the loop and a
	// stream: what the other side needs for the next frame may have to wait that long for a processor.
	vigilTime = 500 * time.Microsecond
	// vigilLooks is how many polls lie between two yields.
	vigilLooks = 8
)

// Vigil decides whether to poll an empty track for a while before sleeping: if the last frame came within
// that time after the track was empty.
type Vigil struct {
	worth bool
	since time.Time // when the track was found empty
}

// begin records that the track is empty.
func (v *Vigil) begin() { v.since = time.Now() }

// End records that the track is not empty any more.
func (v *Vigil) End() { v.worth = time.Since(v.since) < vigilTime }

// Keep polls until there is something, or it has taken too long. It yields between polls.
func (v *Vigil) Keep(there func() bool) bool {
	v.begin()
	if !v.worth {
		return there()
	}
	for n := 1; ; n++ {
		if there() {
			return true
		}
		if n%vigilLooks == 0 {
			runtime.Gosched()
			shared.Yield()
			if time.Since(v.since) > vigilTime {
				return false
			}
		}
	}
}

package ipc

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

// vigil decides whether to poll an empty track for a while before sleeping: if the last frame came within
// that time after the track was empty.
type vigil struct {
	worth bool
	since time.Time // when the track was found empty
}

// begin records that the track is empty.
func (v *vigil) begin() { v.since = time.Now() }

// end records that the track is not empty any more.
func (v *vigil) end() { v.worth = time.Since(v.since) < vigilTime }

// keep polls until there is something, or it has taken too long. It yields between polls.
func (v *vigil) keep(there func() bool) bool {
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

package stream

import (
	"runtime"
	"time"

	"github.com/softvpi/softvpi/internal/ipc/shared"
)

const (
	// spinTime is how long one side polls an empty track before it sleeps, the same as for the loop and a
	// stream: what the other side needs for the next frame may have to wait that long for a processor.
	spinTime = 500 * time.Microsecond
	// spinLooks is how many polls lie between two yields.
	spinLooks = 8
)

// Spin decides whether to poll an empty track for a while before sleeping: if the last frame came within
// that time after the track was empty.
type Spin struct {
	worth bool
	since time.Time // when the track was found empty
}

// begin records that the track is empty.
func (v *Spin) begin() { v.since = time.Now() }

// End records that the track is not empty any more.
func (v *Spin) End() { v.worth = time.Since(v.since) < spinTime }

// Keep polls until there is something, or it has taken too long. It yields between polls.
func (v *Spin) Keep(there func() bool) bool {
	v.begin()
	if !v.worth {
		return there()
	}
	for n := 1; ; n++ {
		if there() {
			return true
		}
		if n%spinLooks == 0 {
			runtime.Gosched()
			shared.Yield()
			if time.Since(v.since) > spinTime {
				return false
			}
		}
	}
}

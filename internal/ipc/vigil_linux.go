package ipc

import (
	"runtime"
	"time"

	"github.com/softvpi/softvpi/internal/ipc/shared"
)

const (
	// vigilTime is how long one side looks at an empty track before it sleeps: as long as a loop looks for more of a
	// stream. What the other side needs for the next frame may have to wait for a processor that long.
	vigilTime = 500 * time.Microsecond
	// vigilLooks is how many looks pass between two offers of the processor.
	vigilLooks = 8
)

// vigil decides whether it is worth looking at an empty track for a while before sleeping:
// where the last frame came within that time after the track was empty.
type vigil struct {
	worth bool
	since time.Time // when the track was found empty
}

// begin notes that the track is empty.
func (v *vigil) begin() { v.since = time.Now() }

// end notes that there is something in it again.
func (v *vigil) end() { v.worth = time.Since(v.since) < vigilTime }

// keep looks until there is something, or it has taken too long. Others have the processor
// between looks.
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

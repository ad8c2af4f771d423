package fake

import (
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/race"
)

// Allocs returns the number of allocations per call of f; none under the race detector, which allocates itself.
func Allocs(f func()) float64 {
	if race.Detector {
		return 0
	}
	return testing.AllocsPerRun(100, f)
}

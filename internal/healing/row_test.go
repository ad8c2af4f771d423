package healing

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// TestRow: five restarts in a row may help, a sixth does not; a minute without one begins a new row, also behind one that was refused.
func TestRow(t *testing.T) {
	var r Row
	now := clock.Time(0)
	for i, step := range []struct {
		after time.Duration
		helps bool
	}{
		{0, true}, {59 * time.Second, true}, {time.Second, true}, {59 * time.Second, true}, {0, true},
		{59 * time.Second, false}, {0, false},
		{time.Minute, true}, {time.Minute, true}, {time.Second, true}, {time.Second, true}, {time.Second, true}, {time.Second, true},
		{time.Second, false},
	} {
		now = now.Add(step.after)
		if helps := r.Next(now); helps != step.helps {
			t.Errorf("step %d: %v", i, helps)
		}
	}
}

package driver

import (
	"testing"

	"github.com/softvpi/softvpi/internal/fabric/state"
)

// TestHeard: each incident of a fabric is told of once, and those of one that has begun anew too.
func TestHeard(t *testing.T) {
	var h heard
	part := func(now int64, numbers ...uint64) *state.Part {
		p := &state.Part{Now: now}
		for _, n := range numbers {
			p.Incidents = append(p.Incidents, state.Incident{Number: n})
		}
		return p
	}
	for i, c := range []struct {
		part *state.Part
		want int
	}{{part(10), 0}, {part(20, 1, 2), 2}, {part(30, 1, 2), 0}, {part(40, 2, 3), 1}, {part(5, 1), 1}, {part(6, 1, 2), 1}} {
		if got := h.fresh(c.part); len(got) != c.want {
			t.Errorf("%d: %d incidents, want %d", i, len(got), c.want)
		}
	}
}

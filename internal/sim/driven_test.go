package sim

import (
	"testing"

	"github.com/softvpi/softvpi/internal/port"
)

// foreseen is a function that is told what arrives.
type foreseen struct {
	port.Function
	steps []int
}

func (f *foreseen) Prefetch(step int, _ []byte) { f.steps = append(f.steps, step) }

// TestAlone_PassesPrefetchingOn: a function that is alone behind a port is told what arrives, one step behind the port.
func TestAlone_PassesPrefetchingOn(t *testing.T) {
	f := &foreseen{}
	x, ok := Alone(f).(Prefetcher)
	if !ok {
		t.Fatal("the port does not prefetch")
	}
	for step := range PrefetchSteps {
		x.Prefetch(step, make([]byte, 12))
	}
	if n := len(f.steps); n != PrefetchSteps-1 || f.steps[0] != 0 || f.steps[n-1] != n-1 {
		t.Errorf("told of steps %v, want all but the last of %d", f.steps, PrefetchSteps)
	}
	if _, ok := Alone(struct{ port.Function }{}).(Prefetcher); !ok {
		t.Error("a port prefetches for itself only if its function does")
	}
}

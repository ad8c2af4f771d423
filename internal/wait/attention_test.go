package wait

import (
	"testing"
	"time"
)

// TestAttention: an idle loop polls for as long as the packets of streams have kept it busy before, up to a limit.
// Single messages and commands earn no such time.
func TestAttention(t *testing.T) {
	const us = time.Microsecond
	type turns struct {
		n       int
		took    time.Duration
		arrived int
	}
	for _, c := range []struct {
		name string
		work []turns
		want time.Duration
	}{
		{"nothing", nil, 0},
		{"single messages", []turns{{1000, 5 * us, 2}}, 0},
		{"commands", []turns{{10, 500 * us, 0}}, 0},
		{"a burst", []turns{{1, 20 * us, 16}}, 20 * us},
		{"some bursts and messages", []turns{{3, 20 * us, 16}, {100, us, 1}, {1, 40 * us, 62}}, 100 * us},
		{"a long stream", []turns{{1000, 20 * us, 16}}, attentionMost},
	} {
		var a Attention
		for _, w := range c.work {
			for range w.n {
				a.Worked(w.took, w.arrived)
			}
		}
		looked := time.Duration(0)
		for looked < time.Second {
			looked += us
			if !a.Idled(us) {
				break
			}
		}
		if want := max(c.want, us); looked != want {
			t.Errorf("%s: looked for %v, want %v", c.name, looked, want)
		}
		if a.Idled(0) {
			t.Errorf("%s: attention is left after all of it was spent", c.name)
		}
	}
}

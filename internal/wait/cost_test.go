package wait

import (
	"testing"
	"time"
)

// TestCost_UsedFollowsTheMachine: what a yield takes that nobody uses says from when on one counts as used, once it is
// known, but it is usedTime at least; a yield to goroutines may take goroutineUsed longer.
func TestCost_UsedFollowsTheMachine(t *testing.T) {
	for _, s := range []struct {
		name  string
		added []time.Duration
		want  time.Duration
	}{
		{"nothing known", nil, usedTime},
		{"a fast machine", []time.Duration{420}, usedTime},
		{"a slow one", []time.Duration{1400}, 1400 * usedCost},
		{"the least counts", []time.Duration{93e3, 1433, 1412, 2304}, 1412 * usedCost},
	} {
		var c cost
		for _, d := range s.added {
			c.add(d)
		}
		for step, limit := range map[Step]time.Duration{YieldThread: s.want, YieldAll: s.want + goroutineUsed} {
			if c.used(step, limit-1) || !c.used(step, limit) {
				t.Errorf("%s, step %v: a yield is not used from %v on", s.name, step, limit)
			}
		}
	}
}

// TestCost_WantsSomeSamples: it takes so many and no more.
func TestCost_WantsSomeSamples(t *testing.T) {
	var c cost
	for i := range costSamples {
		if !c.wanted() {
			t.Fatalf("wants no more than %d", i)
		}
		c.add(time.Microsecond)
	}
	if c.wanted() {
		t.Errorf("wants more than %d", costSamples)
	}
}

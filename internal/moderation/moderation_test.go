package moderation

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// TestMeter: adaptive moderation treats slow traffic as latency traffic and fast traffic as bandwidth traffic;
// between two rates the choice stays as it is (WinOF 5.50, 4.6.5).
func TestMeter(t *testing.T) {
	const low, high = 1000, 2000 // completions a second
	var m Meter
	now, n := clock.Time(0), uint32(0)
	for i, step := range []struct {
		completions uint32
		in          time.Duration
		fast        bool
	}{
		{1, time.Millisecond, false}, // 1000 a second
		{2, time.Millisecond, true},
		{15, 10 * time.Millisecond, true}, // between the two: unchanged
		{9, 10 * time.Millisecond, false},
		{15, 10 * time.Millisecond, false},
		{500, 100 * time.Microsecond, false}, // too short a time to tell
		{0, 900 * time.Microsecond, true},    // 500 in a millisecond
		{0, time.Second, false},
	} {
		now, n = now.Add(step.in), n+step.completions
		if m.Look(now, n, low, high); m.Fast != step.fast {
			t.Errorf("step %d: fast is %v, want %v", i, m.Fast, step.fast)
		}
	}
	m = Meter{from: ^uint32(0) - 4} // the number of completions wraps
	if m.Look(clock.Time(time.Millisecond), 5, low, high); !m.Fast {
		t.Error("10 completions in a millisecond, across the wrap of their number, count as slow")
	}
}

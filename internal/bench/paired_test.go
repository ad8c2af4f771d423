package bench

import (
	"math/rand/v2"
	"testing"
)

// TestMedianInterval: the ranks are those of tables of the sign test; fewer than six values say nothing, and give all of them.
func TestMedianInterval(t *testing.T) {
	for _, c := range []struct{ n, low, high int }{{1, 1, 1}, {2, 1, 2}, {5, 1, 5}, {6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {10, 2, 9},
		{20, 6, 15}, {60, 22, 39}, {100, 40, 61}, {2000, 956, 1045}} {
		v := make([]float64, c.n)
		for i := range v {
			v[i] = float64(i + 1)
		}
		rand.Shuffle(c.n, func(i, j int) { v[i], v[j] = v[j], v[i] })
		if low, high := medianInterval(v); low != float64(c.low) || high != float64(c.high) {
			t.Errorf("of %d: %v to %v, want %d to %d", c.n, low, high, c.low, c.high)
		}
	}
	if low, high := medianInterval(nil); low != 0 || high != 0 {
		t.Errorf("of none: %v to %v", low, high)
	}
}

// TestPaired_Aim: an aim is met if all of the interval meets it, whichever way it bounds; without one there is nothing to meet.
func TestPaired_Aim(t *testing.T) {
	s := samples{}
	for i := range 20 {
		s.turn(90+float64(i), 100) // 0.95 to 1.04 by the ranks of twenty
	}
	for _, c := range []struct {
		aim *Target
		met bool
	}{{timesAtLeast(0.95), true}, {timesAtLeast(0.96), false}, {timesAtMost(1.04), true}, {timesAtMost(1.03), false}} {
		if x := s.paired(Row{Name: "x"}, c.aim); x.RatioLow != 0.95 || x.RatioHigh != 1.04 || *x.Met != c.met || x.Target != c.aim {
			t.Errorf("%v: %+v", c.aim, x)
		}
	}
	if x := s.paired(Row{}, nil); x.Met != nil || x.Target != nil || x.Low != 90 || x.High != 109 || x.PeerValue != 100 {
		t.Errorf("no aim: %+v", x)
	}
}

package remote

import "testing"

// TestPlaced: the clock of completions is placed at the machine's by the middle of the question; one machine's clock is left as it is.
func TestPlaced(t *testing.T) {
	for _, c := range []struct {
		name              string
		zero, now         uint64
		begin, end, wants uint64
	}{
		{"one machine", 1000, 50_000, 49_000, 53_000, 1000},
		{"the host is up for longer", 1_000_000, 1_500_000, 900_000, 900_010, 400_005},
		{"the host is up for less", 10, 500, 9_000, 9_020, 9_010 - 490},
	} {
		if got := placed(clockBody{Zero: c.zero, Now: c.now}, c.begin, c.end); got != c.wants {
			t.Errorf("%s: %d, want %d", c.name, int64(got), int64(c.wants))
		}
	}
}

package pause

import (
	"testing"
	"time"
)

// TestHeadroom: the terms of the formula, in bytes, worked out by hand.
func TestHeadroom(t *testing.T) {
	for _, c := range []struct {
		name string
		r    Reach
		want int
	}{
		// The pause waits for 1518+24 bytes, is 60+24 itself, and the other end ends a frame of 1518+24.
		{"no cable", Reach{Rate: 10e9, Longest: 1518}, 2*1542 + 84},
		{"100 m at 10 Gb/s", Reach{Rate: 10e9, Delay: Cable(100), Longest: 1518}, 2*625 + 2*1542 + 84},
		{"100 m at 100 Gb/s", Reach{Rate: 100e9, Delay: Cable(100), Longest: 9234}, 2*6250 + 2*9258 + 84},
		{"with the response time of the standard", Reach{Rate: 10e9, Delay: Cable(100), Longest: 1518, Response: ResponseTime(10e9)},
			2*625 + 60*64 + 2*1542 + 84},
		{"40 Gb/s", Reach{Rate: 40e9, Longest: 1518, Response: ResponseTime(40e9)}, 118*64 + 2*1542 + 84},
	} {
		if got := c.r.Headroom(); got < c.want-2 || got > c.want { // times are whole nanoseconds
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
	for rate, want := range map[uint64]time.Duration{100e6: 10240, 10e9: 3072, 50e9: 4034, 100e9: 2017, 400e9: 1158} {
		if got := ResponseTime(rate); got != want {
			t.Errorf("%d b/s answer within %v, want %v", rate, got, want)
		}
	}
}

package congestion

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"pgregory.net/rapid"
)

// TestBucket_Property: whoever asks before each packet never sends more in any time than the rate makes in it and the burst, and, if
// there is always something to send, in the end as much as the rate makes.
func TestBucket_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kbps := rapid.Uint32Range(1, 100_000_000).Draw(t, "kbps")
		burst := rapid.Uint32Range(1, 200_000).Draw(t, "burst")
		now := clock.Time(rapid.Int64Range(0, 1e12).Draw(t, "start"))
		b := NewBucket(now, kbps, burst)
		start, sent, longest := now, 0, 0
		for i := range 200 {
			n := rapid.IntRange(60, 9000).Draw(t, "bytes")
			longest = max(longest, n)
			at := b.NextSend(now, n)
			if late := rapid.Int64Range(0, 20).Draw(t, "late"); i < 150 {
				at = at.Add(time.Duration(late) * 1000)
			}
			now = at
			b.Sent(now, n)
			sent += n
			made := float64(kbps) * float64(now.Sub(start)) / 8e6
			rounded := float64(i+2) * max(1, float64(kbps)/8e6) // bytes in as many ns
			if over := float64(sent) - made; over > max(float64(burst), float64(longest))+rounded {
				t.Fatalf("%d bytes in %v at %d kbit/s, a burst of %d", sent, now.Sub(start), kbps, burst)
			}
		}
	})
}

// TestBucket_Idle: what was not used is not saved up beyond the burst.
func TestBucket_Idle(t *testing.T) {
	b := NewBucket(0, 8000, 3000) // 1 byte a microsecond
	for _, c := range []struct {
		at   clock.Time
		n    int
		next clock.Time
	}{
		{0, 1000, 0}, {0, 1000, 0}, {0, 1000, 0}, {0, 1000, 1_000_000}, {1_000_000, 1000, 1_000_000}, {1_000_000, 500, 1_500_000},
		{60_000_000_000, 3000, 60_000_000_000}, {60_000_000_000, 9000, 60_003_000_000},
	} {
		got := b.NextSend(c.at, c.n)
		if d := got.Sub(c.next); d < -1 || d > 1 {
			t.Fatalf("at %v %d bytes may leave at %v, want %v", c.at, c.n, got, c.next)
		}
		if got <= c.at {
			b.Sent(c.at, c.n)
		}
	}
}

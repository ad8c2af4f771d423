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
		b := NewBucket(now, kbps, burst, 0)
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
	b := NewBucket(0, 8000, 3000, 0) // 1 byte a microsecond
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

// TestBucket_Late: who has something to send and is woken late has what the rate made meanwhile, up to what is carried, unless the burst
// is to be kept; who comes later than that, or has nothing to send for a while, has a burst.
func TestBucket_Late(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name        string
		carry, late time.Duration
		idle        time.Duration // after having been woken
		room        int
	}{
		{"in time", 20 * ms, 0, 0, 1000},
		{"a bit late, within the burst", 20 * ms, 1 * ms, 0, 2000},
		{"late", 20 * ms, 10 * ms, 0, 11000},
		{"as late as it may be", 20 * ms, 20 * ms, 0, 21000},
		{"later", 20 * ms, 40 * ms, 0, 23000},
		{"late, for a kept burst", 0, 10 * ms, 0, 3000},
		{"late, and then idle", 20 * ms, 10 * ms, 21 * ms, 3000},
	} {
		b := NewBucket(0, 8000, 3000, c.carry) // 1 byte a microsecond
		b.Sent(0, 3000)
		due := b.NextSend(0, 1000)
		if d := due.Sub(0); d < ms-1 || d > ms+1 {
			t.Fatalf("%s: told to wait for %v, want 1ms", c.name, d)
		}
		now := due.Add(c.late)
		if at := b.NextSend(now, 1000); at != now {
			t.Fatalf("%s: told to wait again, for %v", c.name, at.Sub(now))
		}
		now = now.Add(c.idle)
		if got := b.Room(now); got < c.room-2 || got > c.room+2 {
			t.Errorf("%s: %d bytes may leave, want %d", c.name, got, c.room)
		}
	}
}

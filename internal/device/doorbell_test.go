package device

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// The first post is sent at once, those right behind it wait for each other; after a long burst the first
// of the next one waits too, until posts come alone again.
func TestBurstsOfPosts(t *testing.T) {
	a := &adapter{}
	now := clock.Time(time.Second)
	burst := func(n int, gap time.Duration) (sent int) {
		now = now.Add(gap)
		for range n {
			now = now.Add(100)
			if !a.postpone(now, 7) {
				sent++
				a.release()
			}
		}
		a.release()
		return sent
	}
	const rest = 20 * time.Microsecond
	for i, c := range []struct {
		posts int
		gap   time.Duration
		sent  int
	}{
		{1, rest, 1},
		{burstLong, rest, 1},     // so many less the first
		{burstLong + 1, rest, 1}, // that was one too few
		{burstLong + 1, rest, 0},
		{burstLong + 1, 2 * pollingTime, 1}, // another stream
		{burstPosts + 3, rest, 1},           // full once
		{3, rest, 0},                        // what is left of many may be few
		{1, rest, 0},
	} {
		if sent := burst(c.posts, c.gap); sent != c.sent {
			t.Errorf("step %d: %d of %d posts were sent at once, want %d", i, sent, c.posts, c.sent)
		}
	}
	for range 20 {
		burst(1, rest)
	}
	if burst(1, rest) != 1 {
		t.Error("posts that come alone wait")
	}
}

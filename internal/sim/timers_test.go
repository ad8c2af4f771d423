package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
)

// TestTimers: members are due in the order of their deadlines, whatever these were before.
func TestTimers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var x timers
	const members = 3000
	for range members {
		x.join()
	}
	now := clock.Time(0)
	for range 50_000 {
		if random.IntN(2) > 0 {
			x.set(random.IntN(members), now+clock.Time([]int{88, 177, 1088, 1176, 1}[random.IntN(5)]))
			continue
		}
		least := clock.Never
		for _, at := range x.want {
			least = clock.Min(least, at)
		}
		if at := x.deadline(); at != least {
			t.Fatalf("the first is at %d, want %d", at, least)
		}
		if least == clock.Never {
			continue
		}
		now = least
		if m := x.due(now); m < 0 || x.want[m] != clock.Never {
			t.Fatalf("member %d is due", m)
		}
	}
}

package monotonic

import (
	"testing"
	"time"
)

// TestNowIsTheSystemsClock: a reading lies between two of the system's before and after it, but for what the two
// readings at the start of the process were apart.
func TestNowIsTheSystemsClock(t *testing.T) {
	const apart = uint64(time.Millisecond)
	for range 1000 {
		before := system()
		now := Now()
		after := system()
		if now+apart < before || now > after+apart {
			t.Fatalf("%d, want between %d and %d", now, before, after)
		}
	}
}

package ethernet

import (
	"math/rand/v2"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
)

// TestArrivals: frames arrive in the order of their times, those of one time in the order in which they were sent, however many are on
// their way.
func TestArrivals(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var a arrivals
	var last arrival
	for i := range 200_000 {
		if i > 5000 && random.IntN(2) == 0 {
			x := a.pop()
			if x.before(&last) {
				t.Fatalf("%+v comes after %+v", x, last)
			}
			last = x
			continue
		}
		a.push(arrival{at: last.at + clock.Time([]int{88, 177, 1088, 1176, 0}[random.IntN(5)])})
	}
	for len(a.heap) > 0 {
		x := a.pop()
		if x.before(&last) {
			t.Fatalf("%+v comes after %+v", x, last)
		}
		last = x
	}
}

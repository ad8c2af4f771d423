package ethernet

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
)

// TestArrivals: frames arrive in the order of their times, those of one time by nodes and ports, those for one port of one time in the
// order in which they were sent, however many are on their way.
func TestArrivals(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var a arrivals
	first := []int{a.add(0, 2, false), a.add(1, 5, false)}
	type sent struct {
		at         clock.Time
		lane, sent int
	}
	var want []sent
	now := clock.Time(0)
	for i := 1; i < 100_000 || len(want) > 0; i++ {
		if i == 50_000 { // with frames on their way
			first = append(first, a.add(2, 64, false))
		}
		if i >= 100_000 || i > 1000 && random.IntN(2) == 0 && len(want) > 0 {
			x, y := a.pop(), want[0]
			want = want[1:]
			if got := (sent{x.at, first[x.node] + int(x.port), int(x.frame)}); got != y {
				t.Fatalf("%+v arrives, want %+v", got, y)
			}
			if now = x.at; len(want) > 0 != (a.first() != clock.Never) || len(want) > 0 && a.peek() != Ref(want[0].sent) {
				t.Fatalf("then at %v frame %d", a.first(), a.peek())
			}
			continue
		}
		x := sent{now + clock.Time([]int{88, 177, 1088, 1176, 0}[random.IntN(5)]), random.IntN(len(a.lanes)), i}
		a.push(int32(x.lane), x.at, Ref(i))
		at, _ := slices.BinarySearchFunc(want, x, func(y, x sent) int {
			if y.at < x.at || y.at == x.at && y.lane <= x.lane {
				return -1
			}
			return 1
		})
		want = slices.Insert(want, at, x)
	}
}

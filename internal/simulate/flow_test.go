package simulate

import (
	"math/rand/v2"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
)

// TestHeap: what is in a heap comes out in order.
func TestHeap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var h heap[start]
	var last start
	for i := range 200_000 {
		if i > 5000 && random.IntN(2) == 0 {
			x := h.pop()
			if x.Before(last) {
				t.Fatalf("%+v comes after %+v", x, last)
			}
			last = x
			continue
		}
		h.push(start{last.at + clock.Time([]int{88, 177, 1088, 1176, 0}[random.IntN(5)]), int32(i)})
	}
}

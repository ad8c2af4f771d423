package verbs

import (
	"testing"
	"time"
)

// TestTimestampsDoNotGoBack: whoever makes completions reads the clock before they have their place in the queue, so that
// two peers may come in the other order; but a clock that is wrong does not hold for the ones after it.
func TestTimestampsDoNotGoBack(t *testing.T) {
	const s = uint64(time.Second)
	for _, c := range []struct{ in, want []uint64 }{
		{[]uint64{5, 7, 7, 9}, []uint64{5, 7, 7, 9}},
		{[]uint64{5, 9, 7, 8, 10}, []uint64{5, 9, 9, 9, 10}},
		{[]uint64{s + 8, 8, 9}, []uint64{s + 8, s + 8, s + 8}},
		{[]uint64{s + 8, 7, 9}, []uint64{s + 8, 7, 9}},
		{[]uint64{1 << 63, 7, 6}, []uint64{1 << 63, 7, 7}},
	} {
		for split := range c.in { // over two polls
			var cq CQ
			wcs := make([]WC, len(c.in))
			for i, at := range c.in {
				wcs[i].Timestamp = at
			}
			cq.order(wcs[:split])
			cq.order(wcs[split:])
			for i := range wcs {
				if wcs[i].Timestamp != c.want[i] {
					t.Fatalf("%v become %v, want %v", c.in, wcs, c.want)
				}
			}
		}
	}
}

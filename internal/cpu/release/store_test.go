package release

import (
	"sync/atomic"
	"testing"
)

// A reader that sees the new value also sees everything that was stored before it.
func TestStoresAreInOrder(t *testing.T) {
	const rounds = 20000
	var before, after [16]uint64 // cache lines of their own
	var small [16]uint32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := uint64(1); i <= rounds; i++ {
			Store64(&before[8], i)
			Store32(&small[8], uint32(i))
			Store64(&after[8], i)
		}
	}()
	for seen := uint64(0); seen < rounds; {
		seen = atomic.LoadUint64(&after[8])
		middle := uint64(atomic.LoadUint32(&small[8]))
		if middle < seen {
			t.Fatalf("Store32: %d is seen, but only %d of the store before it", seen, middle)
		}
		if v := atomic.LoadUint64(&before[8]); v < middle {
			t.Fatalf("Store64: %d is seen, but only %d of the store before it", middle, v)
		}
		select {
		case <-done:
			if atomic.LoadUint64(&after[8]) != rounds {
				t.Fatal("the last store is not seen at the end")
			}
		default:
		}
	}
}

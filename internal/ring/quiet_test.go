package ring

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestNoRequestIsLeftWithoutDoorbell: a request put into the ring without a doorbell, because Quiet was in effect, is
// visible once Loud has returned, in any interleaving of the two. The producer unlocks a mutex between Put and Rings.
func TestNoRequestIsLeftWithoutDoorbell(t *testing.T) {
	const rounds = 20000
	g := SendGeometry(4, 1, 0)
	producer, consumer, _ := sendPair(t, g)
	var (
		mu          sync.Mutex
		round, done atomic.Uint32
		rang        bool
		wr          = SendWR{Op: OpSend}
	)
	go func() {
		for r := uint32(1); r <= rounds; r++ {
			await(&round, r)
			mu.Lock()
			err := producer.Put(&wr)
			posted := producer.Posted()
			mu.Unlock()
			if rang = producer.Rings(posted); err != nil {
				t.Error(err)
			}
			done.Store(r)
		}
	}()
	var taken Work
	for r := uint32(1); r <= rounds; r++ {
		consumer.Quiet(8)
		round.Store(r)
		for range r % 64 { // so that both look at the same moment in some rounds
			consumer.Posted()
		}
		consumer.Loud()
		n, err := consumer.Pending()
		await(&done, r)
		if n == 0 && !rang {
			t.Fatalf("round %d: the request was posted without a doorbell and was not seen afterwards", r)
		}
		if ok, nextErr := consumer.Next(&taken); !ok || err != nil || nextErr != nil {
			t.Fatal(ok, err, nextErr)
		}
		consumer.Release(1)
	}
}

// await polls until w is v, and yields now and then because there may be only one processor.
func await(w *atomic.Uint32, v uint32) {
	for looks := 1; w.Load() != v; looks++ {
		if looks%1024 == 0 {
			runtime.Gosched()
		}
	}
}

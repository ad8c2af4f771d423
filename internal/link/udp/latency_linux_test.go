package udp

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
)

// BenchmarkLatency measures half a round trip of one 64-byte packet between two polling threads on loopback: what the
// link alone adds to a message.
func BenchmarkLatency(b *testing.B) {
	for _, v := range variants() {
		b.Run(v.name, func(b *testing.B) {
			here, there := v.open(b), v.open(b)
			out := packets(routeTo(b, here, there), here.Capabilities(), payloadsOf(1, 48)...)
			back := packets(routeTo(b, there, here), there.Capabilities(), payloadsOf(1, 48)...)
			var stop atomic.Bool
			done := make(chan struct{})
			go func() {
				defer close(done)
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				in := make([]frame.In, 8)
				for !stop.Load() {
					n, err := there.Receive(in)
					if err != nil {
						b.Error(err)
						return
					}
					if n > 0 {
						there.Send(back)
					} else {
						runtime.Gosched()
					}
				}
			}()
			var trips []time.Duration
			in := make([]frame.In, 8)
			for range 20000 {
				start := time.Now()
				here.Send(out)
				for n := 0; n == 0; {
					n, _ = here.Receive(in)
					if n == 0 {
						runtime.Gosched()
					}
					if time.Since(start) > 5*time.Second {
						b.Fatal("no answer")
					}
				}
				trips = append(trips, time.Since(start))
			}
			stop.Store(true)
			<-done
			slices.Sort(trips)
			b.ReportMetric(float64(trips[len(trips)/2].Nanoseconds())/2000, "us-median")
			b.ReportMetric(float64(trips[len(trips)*99/100].Nanoseconds())/2000, "us-99%")
			b.ReportMetric(0, "ns/op")
		})
	}
}

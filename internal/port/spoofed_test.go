package port

import (
	"testing"

	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// BenchmarkSpoofed: frames of 1500 bytes from one virtual function to another, alone, and while a third has as many of 60 bytes from
// another's address to send. What reading these from their host costs is not in it.
func BenchmarkSpoofed(b *testing.B) {
	for name, spoofs := range map[string]bool{"alone": false, "beside a spoofer": true} {
		b.Run(name, func(b *testing.B) { benchmarkSpoofed(b, spoofs) })
	}
}

func benchmarkSpoofed(b *testing.B, spoofs bool) {
	const batch = 32
	h := newHive(&testing.T{}, eswitch.Config{})
	red, blue, bad := h.add(eswitch.VF(0), 10, 0, nil), h.add(eswitch.VF(1), 11, 0, nil), h.add(eswitch.VF(2), 12, 0, nil)
	good := frame.In{Data: red.from(blue.mac, 0, eth.TypeIPv4, make([]byte, 1426)...)}
	spoofed := frame.In{Data: red.from(blue.mac, 0, eth.TypeIPv4)[:60]} // which bad sends
	var out [batch]frame.Out
	got := 0
	for b.Loop() {
		for range batch {
			red.send = append(red.send, good)
			if spoofs {
				bad.send = append(bad.send, spoofed)
			}
		}
		for h.p.Transmit(0, out[:]) > 0 {
		}
		h.p.Advance(0)
		got += len(blue.in)
		red.send, bad.send, blue.in = red.send[:0], bad.send[:0], blue.in[:0]
	}
	if n := h.sw.Counters(eswitch.VF(2)).Dropped[eswitch.SourceMAC]; spoofs != (n > 0) || got == 0 {
		b.Fatalf("%d frames arrive, %d are refused", got, n)
	}
	b.ReportMetric(float64(got)/b.Elapsed().Seconds(), "frames/s")
}

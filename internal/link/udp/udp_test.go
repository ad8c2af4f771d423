package udp

import (
	"bytes"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What is sent arrives, in order, whole, with its sender's address.
func TestPacketsArrive(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		r := routeTo(t, a, b)
		for _, c := range []struct {
			name     string
			payloads [][]byte
		}{
			{"one empty", payloadsOf(1, 0)},
			{"one", payloadsOf(1, 1024)},
			{"a burst", payloadsOf(10, 1024)},
			{"a burst with a short end", append(payloadsOf(5, 512), payloadsOf(1, 100)...)},
			{"many bursts", payloadsOf(80, 256)},
			{"unequal", [][]byte{make([]byte, 10), make([]byte, 20), make([]byte, 20), make([]byte, 8), make([]byte, 8)}},
			{"4096", payloadsOf(20, 4096)},
		} {
			t.Run(c.name, func(t *testing.T) {
				frames := packets(r, a.Capabilities(), c.payloads...)
				sendAll(t, a, frames)
				all := receiveN(t, b, len(frames))
				for i, p := range all {
					if !bytes.Equal(p.data, packetBytes(&frames[i])) {
						t.Fatalf("packet %d of %d differs: %d bytes for %d", i, len(all), len(p.data), frames[i].Len())
					}
					if p.in.Src != a.Status().Addr.Addr() || p.in.SrcPort != r.SrcPort || p.in.Dst != b.Status().Addr.Addr() {
						t.Fatalf("packet %d: from %v:%d to %v", i, p.in.Src, p.in.SrcPort, p.in.Dst)
					}
				}
			})
		}
	})
}

package transport

import (
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/ring"
)

// TestShortAnswersLeaveInBursts: of the answers to short reads Transmit returns about half of those that the requester may wait for, so
// that both sides work at once, and no more than a burst of the link holds.
func TestShortAnswersLeaveInBursts(t *testing.T) {
	for _, c := range []struct {
		mtu    uint32
		size   int
		depth  uint8
		bursts bool
		want   int // packets of the first Transmit
	}{
		{1024, 4096, 16, true, 32}, {1024, 4096, MaxReadAtomic, true, 60}, {1024, 4096, MaxReadAtomic, false, 60},
		{4096, 4096, 16, true, 8}, {4096, 4096, 24, true, 12}, {4096, 4096, MaxReadAtomic, true, 15},
		{1024, 1024, 16, true, 16}, {1024, 1024, MaxReadAtomic, true, 60},
	} {
		t.Run(fmt.Sprintf("%d bytes, path MTU %d, %d outstanding, bursts %v", c.size, c.mtu, c.depth, c.bursts), func(t *testing.T) {
			con := defaultConnection()
			con.mtu, con.depth, con.bursts = c.mtu, c.depth, c.bursts
			f := newFlowOn(t, con, c.size, ring.OpRead)
			f.run(t, 64) // the window grows
			f.run(t, 64)
			f.run(t, 64)
			for range 64 {
				f.a.post(f.wr)
			}
			for n := f.a.turn(f.now, f.w.out); n > 0; n = f.a.turn(f.now, f.w.out) {
				f.w.deliver(f.now, n, f.b.host)
			}
			if got := f.b.turn(f.now, f.w.out); got != c.want {
				t.Errorf("%d packets, want %d", got, c.want)
			}
		})
	}
}

package transport

import (
	"testing"

	"github.com/softvpi/softvpi/internal/ring"
)

// TestAnswersLeaveEarly: answers to short reads leave in batches of 8, so that the requester has work while the
// others are made; the answers to a long read leave as many as fit at once. All of them leave.
func TestAnswersLeaveEarly(t *testing.T) {
	for _, c := range []struct {
		name               string
		mtu                uint32
		bytes, reads       int
		first, turns, most int // packets of the first Transmit, calls, packets in all
	}{
		{"one packet each", 4096, 4096, 16, 8, 2, 16},
		{"four packets each", 1024, 4096, 16, 32, 2, 64},
		{"few", 4096, 4096, 8, 8, 1, 8},
		{"tiny", 1024, 64, 16, 16, 1, 16},
		{"long", 1024, 30 * 1024, 1, 30, 1, 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFlow(t, c.mtu, c.bytes, ring.OpRead)
			f.a.q.win.grow(c.most, 512) // so far
			for range c.reads {
				f.a.post(f.wr)
			}
			f.pass(f.a.host, f.b.host, c.reads)
			turns, all := 0, 0
			for n := f.b.e.Transmit(f.now, 0, f.w.out); n > 0; n = f.b.e.Transmit(f.now, 0, f.w.out) {
				if turns++; turns == 1 && n != c.first {
					t.Errorf("%d packets at first, want %d", n, c.first)
				}
				all += n
			}
			if turns != c.turns || all != c.most {
				t.Errorf("%d packets in %d turns, want %d in %d", all, turns, c.most, c.turns)
			}
		})
	}
}

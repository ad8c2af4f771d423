package transport

import (
	"testing"

	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport/congestion"
)

// TestWindowBoundsReads: READ requests ask for no more answer packets than the destination's window allows, over all
// requests of a turn and also when they are sent again, because the responder sends every answer once more. One chunk
// may always be asked for.
func TestWindowBoundsReads(t *testing.T) {
	for _, c := range []struct {
		name        string
		size        int // of the window
		first, then int // chunks asked for at first, and after the ACK timer has ended
	}{
		{"less than a chunk", 32, 1, 1},
		{"some chunks", 4 * readChunk, 4, 2},
		{"more than may be outstanding", 32 * readChunk, flowDepth, flowDepth},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFlow(t, 1024, readChunk*1024, ring.OpRead)
			f.a.q.win.grow(c.size, max(c.size, 512))
			for range flowDepth + 1 {
				f.a.post(f.wr)
			}
			if n := f.a.e.Transmit(f.now, 0, f.w.out); n != c.first {
				t.Errorf("asks for %d chunks, want %d", n, c.first)
			}
			f.now = f.a.q.req.expires
			f.a.e.Advance(f.now) // a probe may be due too; the timer's end comes after it
			f.a.e.Advance(f.now)
			if n := f.a.e.Transmit(f.now, 0, f.w.out); n != c.then {
				t.Errorf("asks for %d chunks again, want %d", n, c.then)
			}
		})
	}
}

// grow gives w a controller whose window has grown to size, of most at the most.
func (w *window) grow(size, most int) {
	cfg := congestion.Config{Start: min(32, size), Min: min(2, size), Max: most, Near: most}
	w.control = congestion.NewWindow(false, &cfg)
	for w.size, w.most = w.control.Limit(); w.size < size; w.size, _ = w.control.Limit() {
		w.control.Acked(0, min(size-w.size, w.size), w.size)
	}
}

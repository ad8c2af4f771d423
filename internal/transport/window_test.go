package transport

import (
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
)

// TestWindowBoundsReads: READ requests ask for no more answers than the window of the
// destination allows, also those of one turn and those that are sent again, of which
// the responder sends every answer once more. One chunk may be asked for always.
func TestWindowBoundsReads(t *testing.T) {
	for _, c := range []struct {
		name        string
		size        int // of the window
		first, then int // chunks asked for at first, and when the ACK timer has ended
	}{
		{"less than a chunk", 32, 1, 1},
		{"some chunks", 4 * readChunk, 4, 2},
		{"more than may be outstanding", 32 * readChunk, MaxReadAtomic, MaxReadAtomic},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFlow(t, 1024, readChunk*1024, ring.OpRead)
			f.a.q.win.size = c.size
			for range MaxReadAtomic {
				f.a.post(f.wr)
			}
			if n := f.a.e.Transmit(f.now, f.w.out); n != c.first {
				t.Errorf("asks for %d chunks, want %d", n, c.first)
			}
			f.now = f.a.q.req.expires
			f.a.e.Advance(f.now) // a probe may be due too, which the end of the timer comes after
			f.a.e.Advance(f.now)
			if n := f.a.e.Transmit(f.now, f.w.out); n != c.then {
				t.Errorf("asks for %d chunks again, want %d", n, c.then)
			}
		})
	}
}

// TestQueuesBehindGaps: where it is mostly the queue that makes the round trip long, a
// window of several bursts shrinks by a little for each gap, and no further; where it is the way, or there is
// no loss, it keeps its size.
func TestQueuesBehindGaps(t *testing.T) {
	for _, c := range []struct {
		name    string
		rtt     time.Duration
		size    int
		smaller bool
	}{
		{"a long way", 150 * time.Microsecond, 512, false},
		{"a long queue", 850 * time.Microsecond, 512, true},
		{"a few bursts", 850 * time.Microsecond, 4 * 32, false},
	} {
		w := newWindow(netip.Addr{}, false, &WindowConfig{Start: 32, Min: 2, Max: 512})
		w.size = c.size
		now := clock.Time(100 * time.Microsecond)
		w.measured(0, now)
		for range 100 {
			now = now.Add(c.rtt)
			w.measured(now.Add(-c.rtt), now)
		}
		if w.queued() != c.smaller {
			t.Errorf("%s: round trip %v, at least %v, window %d: queued is %v", c.name, w.rtt, w.least, w.size, w.queued())
		}
	}
}

// TestNearWindow: a window to a destination that the same loop serves grows less far.
func TestNearWindow(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  WindowConfig
		near bool
		most int
	}{
		{"elsewhere", WindowConfig{}, false, 512},
		{"near", WindowConfig{}, true, 128},
		{"a large one near", WindowConfig{Max: 1024, Near: 1024}, true, 1024},
		{"a small one near", WindowConfig{Max: 64}, true, 64},
	} {
		cfg := Config{Memory: memory.NewTable(1, nil), Window: c.cfg}
		if err := cfg.complete(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		w := newWindow(netip.Addr{}, c.near, &cfg.Window)
		for range 3000 {
			n := w.size - w.inFlight
			w.inFlight += n
			w.acked(n)
		}
		if w.size != c.most {
			t.Errorf("%s: grown to %d, want %d", c.name, w.size, c.most)
		}
	}
}

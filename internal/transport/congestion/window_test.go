package congestion

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// The window starts at 32, grows to 512 while it is made full use of, and is halved at most once for the losses in a
// window of packets or in a millisecond.
func TestWindow(t *testing.T) {
	cfg := Config{Start: 32, Min: 2, Max: 512}
	w := New(false, &cfg)
	for range 100 {
		w.InFlight++
		w.Acked(1)
	}
	if w.Size != 32 {
		t.Errorf("grown to %d by senders that it does not hold back, want 32", w.Size)
	}
	for range 100 {
		n := w.Size - w.InFlight
		w.InFlight += n
		w.Acked(n)
	}
	if w.Size != 512 {
		t.Errorf("grown to %d, want the most, 512", w.Size)
	}
	now := clock.Time(5 * time.Millisecond)
	w.Lost(now, 64)
	w.Lost(now+10, 64)
	if w.Size != 256 {
		t.Errorf("%d after one burst of losses, want 256", w.Size)
	}
	w.Lost(now.Add(cutInterval), 64)
	if w.Size != 128 {
		t.Errorf("%d after another burst, want 128", w.Size)
	}
	for range 20 {
		now = now.Add(cutInterval)
		w.Lost(now, 64)
	}
	if w.Size != 2 {
		t.Errorf("shrunk to %d, want the least, 2", w.Size)
	}
	for range 30 {
		w.InFlight += w.Size
		w.Acked(w.Size)
	}
	if w.Size < 32 {
		t.Errorf("%d after 30 windows without a loss, want at least 32", w.Size)
	}
	for range 20 { // each a burst of losses after 64 packets
		w.Size = 40
		w.InFlight += 64
		w.Acked(64)
		w.Lost(now, 64)
	}
	if w.Size != 32 {
		t.Errorf("%d where bursts are lost now and then, want 32", w.Size)
	}
	w.Size = 400
	for range 100 { // one packet of 50 is lost
		w.InFlight += 300
		w.Acked(50)
		w.InFlight -= 250
		w.Lost(now, 1)
	}
	if w.Size < 400 {
		t.Errorf("%d where single packets are lost, want at least 400", w.Size)
	}
	for range 100 {
		w.Crowded()
	}
	if w.Size >= 200 || w.Size < 32 {
		t.Errorf("%d after gaps that had to wait for each other, want 32 to 199", w.Size)
	}
}

// The window to a destination that the same loop serves has a lower limit.
func TestNearWindow(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		near bool
		most int
	}{
		{"elsewhere", Config{}, false, 512},
		{"near", Config{}, true, 128},
		{"a large one near", Config{Max: 1024, Near: 1024}, true, 1024},
		{"a small one near", Config{Max: 64}, true, 64},
	} {
		if err := c.cfg.Complete(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		w := New(c.near, &c.cfg)
		for range 3000 {
			n := w.Size - w.InFlight
			w.InFlight += n
			w.Acked(n)
		}
		if w.Size != c.most {
			t.Errorf("%s: grown to %d, want %d", c.name, w.Size, c.most)
		}
	}
}

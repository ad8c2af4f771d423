package congestion

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// sender is a window with what transport counts for it.
type sender struct {
	*Window
	inFlight int
}

func (s *sender) limit() int {
	now, _ := s.Limit()
	return now
}

func (s *sender) send(n int) { s.inFlight += n }

func (s *sender) acked(n int) {
	s.Acked(0, n, s.inFlight)
	s.inFlight -= n
}

// fill sends as much as the window allows, and all that arrives.
func (s *sender) fill() {
	n := s.limit() - s.inFlight
	s.send(n)
	s.acked(n)
}

// The window starts at 32, grows to 512 while it is made full use of, and is halved at most once for the losses in a
// window of packets or in a millisecond.
func TestWindow(t *testing.T) {
	cfg := Config{Start: 32, Min: 2, Max: 512}
	w := &sender{Window: NewWindow(false, &cfg)}
	for range 100 {
		w.send(1)
		w.acked(1)
	}
	if w.limit() != 32 {
		t.Errorf("grown to %d by senders that it does not hold back, want 32", w.limit())
	}
	for range 100 {
		w.fill()
	}
	if w.limit() != 512 {
		t.Errorf("grown to %d, want the most, 512", w.limit())
	}
	now := clock.Time(5 * time.Millisecond)
	w.Lost(now, 64)
	w.Lost(now+10, 64)
	if w.limit() != 256 {
		t.Errorf("%d after one burst of losses, want 256", w.limit())
	}
	w.Lost(now.Add(cutInterval), 64)
	if w.limit() != 128 {
		t.Errorf("%d after another burst, want 128", w.limit())
	}
	for range 20 {
		now = now.Add(cutInterval)
		w.Lost(now, 64)
	}
	if w.limit() != 2 {
		t.Errorf("shrunk to %d, want the least, 2", w.limit())
	}
	for range 30 {
		w.send(w.limit())
		w.acked(w.limit())
	}
	if w.limit() < 32 {
		t.Errorf("%d after 30 windows without a loss, want at least 32", w.limit())
	}
	for range 20 { // each a burst of losses after 64 packets
		w.size = 40
		w.send(64)
		w.acked(64)
		w.Lost(now, 64)
	}
	if w.limit() != 32 {
		t.Errorf("%d where bursts are lost now and then, want 32", w.limit())
	}
	w.size = 400
	for range 100 { // one packet of 50 is lost
		w.send(300)
		w.acked(50)
		w.send(-250)
		w.Lost(now, 1)
	}
	if w.limit() < 400 {
		t.Errorf("%d where single packets are lost, want at least 400", w.limit())
	}
	for range 100 {
		w.Crowded()
	}
	if w.limit() >= 200 || w.limit() < 32 {
		t.Errorf("%d after gaps that had to wait for each other, want 32 to 199", w.limit())
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
		w := &sender{Window: NewWindow(c.near, &c.cfg)}
		for range 3000 {
			w.fill()
		}
		if now, most := w.Limit(); now != c.most || most != c.most {
			t.Errorf("%s: grown to %d of %d, want %d", c.name, now, most, c.most)
		}
	}
}

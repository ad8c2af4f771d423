package port

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// draw lets a scheduler send packets of 1000 to 4000 bytes for a time on a wire of 10 GB/s, with all of pending
// backlogged, and returns the bytes at each priority.
func draw(s *Scheduler, pending uint8, d time.Duration) (bytes [8]int) {
	rng := rand.New(rand.NewPCG(1, 2))
	now := clock.Time(0)
	for end := now.Add(d); now < end; {
		p, most, ok := s.Next(now, pending)
		if !ok {
			now = max(s.Deadline(pending), now+1)
			continue
		}
		for range min(most, 1+rng.IntN(32)) {
			n := 1000 + rng.IntN(3000)
			bytes[p] += n
			s.Sent(p, n)
			now += clock.Time(n / 10)
		}
	}
	return bytes
}

// TestScheduler_Shares: classes with something to send share the wire by their weights, strict ones go first, a class
// stays below its rate, and what a paused or idle one leaves goes to the others.
func TestScheduler_Shares(t *testing.T) {
	own := [8]uint8{0, 1, 2, 3, 4, 5, 6, 7} // each priority is a class
	for _, x := range []struct {
		name    string
		traffic Traffic
		pending uint8
		paused  uint8
		want    [8]float64 // parts of 100
	}{
		{"one alone", Traffic{}, 1 << 3, 0, [8]float64{3: 100}},
		{"one class takes turns", Traffic{}, 0xff, 0, [8]float64{12.5, 12.5, 12.5, 12.5, 12.5, 12.5, 12.5, 12.5}},
		{"equal weights", Traffic{Class: own}, 0b1011, 0, [8]float64{33.3, 33.3, 0, 33.3}},
		{"weights", Traffic{Class: own, Weight: [8]uint8{10, 30, 60}}, 0b111, 0, [8]float64{10, 30, 60}},
		{"the share of an idle class goes to the others", Traffic{Class: own, Weight: [8]uint8{10, 30, 60}}, 0b011, 0, [8]float64{25, 75}},
		{"the share of a paused priority too", Traffic{Class: own, Weight: [8]uint8{10, 30, 60}}, 0b111, 0b100, [8]float64{25, 75}},
		{"two priorities of a class take turns", Traffic{Class: [8]uint8{0, 0, 1}, Weight: [8]uint8{1, 1}}, 0b111, 0, [8]float64{25, 25, 50}},
		{"strict goes first", Traffic{Class: own, Strict: 1 << 5}, 0b100011, 0, [8]float64{5: 100}},
		{"of two strict ones the higher", Traffic{Class: own, Strict: 0b11000000}, 0xff, 0, [8]float64{7: 100}},
		{"strict and paused", Traffic{Class: own, Strict: 1 << 5, Weight: [8]uint8{40, 60}}, 0b100011, 1 << 5, [8]float64{40, 60}},
		{"a rate", Traffic{Class: own, Rate: [8]uint64{1e9}}, 0b11, 0, [8]float64{10, 90}},
		{"strict with a rate leaves the rest", Traffic{Class: own, Strict: 0b10, Rate: [8]uint64{1: 2e9}}, 0b11, 0, [8]float64{80, 20}},
	} {
		t.Run(x.name, func(t *testing.T) {
			var s Scheduler
			if err := s.SetTraffic(0, x.traffic); err != nil {
				t.Fatal(err)
			}
			s.Pause(x.paused)
			bytes := draw(&s, x.pending, 100*time.Millisecond)
			total := 0
			for _, n := range bytes {
				total += n
			}
			for p, n := range bytes {
				share := 100 * float64(n) / float64(total)
				if d := share - x.want[p]; d > 2 || d < -2 {
					t.Errorf("priority %d has %.1f %% of the bytes, want %.1f", p, share, x.want[p])
				}
			}
		})
	}
}

// TestScheduler_RateAlone: a class that is alone on the wire stays at its rate, and the deadline says when it may go on.
func TestScheduler_RateAlone(t *testing.T) {
	var s Scheduler
	if err := s.SetTraffic(0, Traffic{Rate: [8]uint64{125e6}}); err != nil {
		t.Fatal(err)
	}
	const d = 200 * time.Millisecond
	got, want := draw(&s, 1, d)[0], int(125e6*d.Seconds())
	if got < want*98/100 || got > want*102/100+rateBurst {
		t.Errorf("%d bytes in %v, want %d", got, d, want)
	}
}

// TestScheduler_Paused: what is paused never has a turn, and does not wake anybody.
func TestScheduler_Paused(t *testing.T) {
	var s Scheduler
	s.Pause(0b0110)
	if _, _, ok := s.Next(0, 0b0110); ok || s.Deadline(0b0110) != clock.Never {
		t.Error("a paused priority sends, or has a deadline")
	}
	if p, _, ok := s.Next(0, 0b0111); !ok || p != 0 || s.Deadline(0b0111) != 0 {
		t.Error("a priority that is not paused is held up by those that are")
	}
	s.Pause(0)
	if _, _, ok := s.Next(0, 0b0110); !ok {
		t.Error("a priority stays paused")
	}
}

// TestTraffic_Invalid: an invalid setting is refused with its field, and changes nothing.
func TestTraffic_Invalid(t *testing.T) {
	var s Scheduler
	good := Traffic{Weight: [8]uint8{1, 2}}
	if err := s.SetTraffic(0, good); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		traffic Traffic
		field   string
	}{
		{Traffic{Class: [8]uint8{2: 8}}, "Class[2]"},
		{Traffic{Weight: [8]uint8{7: 101}}, "Weight[7]"},
	} {
		var e *ConfigError
		if err := s.SetTraffic(0, x.traffic); !errors.As(err, &e) || e.Field != x.field || s.Traffic() != good {
			t.Errorf("%v, settings %+v", err, s.Traffic())
		}
	}
}

// TestScheduler_Alone: what a class sends while no other has anything is not held against it later.
func TestScheduler_Alone(t *testing.T) {
	var s Scheduler
	if err := s.SetTraffic(0, Traffic{Class: [8]uint8{0, 1}}); err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		p, _, _ := s.Next(0, 1)
		s.Sent(p, 1500)
	}
	var n [2]int
	for range 1000 {
		p, _, _ := s.Next(0, 3)
		s.Sent(p, 1500)
		n[p]++
	}
	if n[0] < 495 || n[0] > 505 {
		t.Errorf("of 1000 packets %v are of each class, want the half", n)
	}
}

package wait

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

const us = time.Microsecond

var stepNames = [...]string{"look", "yield", "yield to all", "yield to lower", "nap", "arm"}

func (s Step) String() string { return stepNames[s] }

// script runs a wait in which every look is vain and takes look, until the waiter arms or after most looks, and returns
// how often each step was taken and when it armed, Never if it did not.
func script(s *Spinner, look time.Duration, most int) (steps map[Step]int, armed clock.Time) {
	now := s.turn
	steps = map[Step]int{}
	for range most {
		now = now.Add(look)
		step := Look
		if s.Due() {
			step = s.Next(now, false)
		}
		if steps[step]++; step == Arm {
			return steps, now
		}
	}
	return steps, clock.Never
}

// TestPolicy_YieldsBeforeItArms: each policy of the table that yields does so before it arms wake-ups, as often as the
// table says, and arms neither before nor after its spin has ended.
func TestPolicy_YieldsBeforeItArms(t *testing.T) {
	const look = us / 2
	for k := range kinds {
		s := Spinner{Policy: Of(k), short: true}
		s.Begin(1000)
		steps, armed := script(&s, look, 100_000)
		looks := 100_000
		if s.Spin != Forever {
			looks = int(s.Spin / look)
			if s.Looks > 0 { // it arms at the end of a series of looks
				looks = (looks + int(s.Looks) - 1) / int(s.Looks) * int(s.Looks)
			}
		}
		if s.Most > 0 {
			looks = min(looks, int(s.Most))
		}
		if armed == clock.Never {
			if s.Spin != Forever || s.Most > 0 {
				t.Errorf("kind %d: never arms", k)
			}
			continue
		}
		if got := int(armed.Sub(1000) / look); got != looks {
			t.Errorf("kind %d: arms after look %d, want %d", k, got, looks)
		}
		yields, all := 0, 0
		for n := 1; n < looks; n++ {
			if s.Looks > 0 && n%int(s.Looks) == 0 {
				yields++
				if s.Goroutines > 0 && n%int(s.Looks*s.Goroutines) == 0 {
					all++
				}
			}
		}
		if steps[YieldThread] != yields-all || steps[YieldAll] != all {
			t.Errorf("kind %d: %v, want %d yields, %d of them to goroutines", k, steps, yields, all)
		}
	}
}

// TestPolicy_ArmsAtOnceWithoutASpin: a waiter without a spin arms after one look.
func TestPolicy_ArmsAtOnceWithoutASpin(t *testing.T) {
	s := Spinner{Policy: Policy{Looks: 1}}
	if step := s.Begin(5); step != Arm {
		t.Errorf("begins with %v, want %v", step, Arm)
	}
	if s.Due(); s.Next(5, false) != Arm {
		t.Error("looks again")
	}
}

// TestPolicy_LooksOnWhileAsked: a waiter whose spin has ended goes on for as long as somebody asks it to.
func TestPolicy_LooksOnWhileAsked(t *testing.T) {
	for k := range kinds {
		s := Spinner{Policy: Of(k)}
		s.Begin(0)
		for n := range 100 {
			if s.looks++; s.Next(clock.Time(time.Second)*clock.Time(n+1), true) == Arm {
				t.Fatalf("kind %d: arms at look %d", k, n)
			}
		}
	}
}

// TestPolicy_WithOneProcessorYieldsToGoroutinesEachTime: no other thread runs them; who spins at their cost does not.
func TestPolicy_WithOneProcessorYieldsToGoroutinesEachTime(t *testing.T) {
	for k := range kinds {
		p, of := Of(k).On(1), Of(k)
		if got, want := p.At(p.Looks), of.At(of.Looks*max(of.Goroutines, 1)); got != want {
			t.Errorf("kind %d: %v, want %v", k, got, want)
		}
		if k == Leader && p.Spin != 0 {
			t.Errorf("kind %d: spins %v on the only processor", k, p.Spin)
		}
		if many := of.On(2); many != of {
			t.Errorf("kind %d: %+v with two processors, want %+v", k, many, of)
		}
	}
}

// TestSpinner_RecentSpinsOnlyAfterAShortWait: whether the news of the wait before came within the spin decides whether this
// wait begins with looking; waits that ended while it looked change nothing, and Forget begins anew.
func TestSpinner_RecentSpinsOnlyAfterAShortWait(t *testing.T) {
	s := Spinner{Policy: Policy{Spin: 10 * us, Looks: 1, Recent: true}}
	now := clock.Time(0)
	for i, c := range []struct {
		slept  time.Duration // before the news
		forget bool
		spins  bool // the next wait
	}{{5 * us, false, true}, {10*us - 1, false, true}, {10 * us, false, false}, {us, true, false}, {us, false, true}} {
		s.Begin(now)
		now = now.Add(c.slept)
		s.End(now)
		if c.forget {
			s.Forget()
		}
		if spins := s.Begin(now) == Look; spins != c.spins {
			t.Errorf("wait %d: spins %t after one of %v, want %t", i, spins, c.slept, c.spins)
		}
	}
}

// TestSpinner_EarnsTimeFromStreams: an idle loop looks on for as long as packets of streams have kept it busy before, up to
// a limit. Single messages and commands earn no such time.
func TestSpinner_EarnsTimeFromStreams(t *testing.T) {
	type turns struct {
		n       int
		took    time.Duration
		arrived int
	}
	for _, c := range []struct {
		name string
		work []turns
		want time.Duration
	}{
		{"nothing", nil, 0},
		{"single messages", []turns{{1000, 5 * us, 2}}, 0},
		{"commands", []turns{{10, 500 * us, 0}}, 0},
		{"a burst", []turns{{1, 20 * us, 16}}, 20 * us},
		{"some bursts and messages", []turns{{3, 20 * us, 16}, {100, us, 1}, {1, 40 * us, 62}}, 100 * us},
		{"a long stream", []turns{{1000, 20 * us, 16}}, 500 * us},
	} {
		s := Spinner{Policy: Of(Background)}
		now := clock.Time(0)
		s.Begin(now)
		for _, w := range c.work {
			for range w.n {
				now = now.Add(w.took)
				s.Worked(now, w.arrived)
			}
		}
		for range 2 {
			_, armed := script(&s, us, 10_000)
			if looked := armed.Sub(now); looked != s.Spin+max(c.want, us)-us {
				t.Errorf("%s: looked for %v, want %v", c.name, looked, s.Spin+c.want)
			}
			now = armed
			s.Begin(now)
			c.want = 0 // it is spent
		}
	}
}

// TestSpinner_EveryScript: for every policy of a small world and every script of six looks, whatever each takes, news, and
// questions to go on, the waiter arms exactly when its spin and what it earned are over and nobody asks it to go on,
// never sooner, and yields only at the looks that the policy says.
func TestSpinner_EveryScript(t *testing.T) {
	type event struct {
		took    time.Duration
		packets int // -1: a vain look
		more    bool
	}
	var events []event
	for _, took := range []time.Duration{0, 1, 3} {
		events = append(events, event{took, -1, false}, event{took, -1, true}, event{took, streamPackets - 1, false},
			event{took, streamPackets, false})
	}
	const depth = 5
	for _, p := range []Policy{
		{Spin: 3, Looks: 1}, {Spin: 3, Looks: 1, Earn: 2}, {Spin: Forever, Most: 2, Looks: 1, Goroutines: 2},
		{Spin: 0, Looks: 1, Earn: 4, Goroutines: 1},
	} {
		total := 1
		for range depth {
			total *= len(events)
		}
		for n := range total {
			s := Spinner{Policy: p}
			s.Begin(100)
			now, began, looks, left := clock.Time(100), clock.Time(100), 0, time.Duration(0)
			for rest := n; rest > 0; rest /= len(events) {
				e := events[rest%len(events)]
				now = now.Add(e.took)
				if e.packets >= 0 {
					if e.packets >= streamPackets {
						left = min(left+e.took, p.Earn)
					}
					s.Worked(now, e.packets)
					began, looks = now, 0
					continue
				}
				looks++
				over := p.Most > 0 && looks >= int(p.Most)
				if !e.more && !over && now.Sub(began) >= p.Spin {
					left = max(left-e.took, 0)
					over = left == 0
				}
				want := p.At(uint32(looks))
				if over && !e.more {
					want = Arm
				}
				if s.Due(); s.Next(now, e.more) != want {
					t.Fatalf("%+v, script %d, look %d at %d: not %v", p, n, looks, now, want)
				}
			}
		}
	}
}

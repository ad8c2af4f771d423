package wait

import (
	"fmt"
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

// TestContention_YieldsAfterEachLookWhileYieldsAreUsed: a poller that is alone yields after as many looks as its policy
// says; while its yields are used, after each; and again as seldom once contended yields in a row were not.
func TestContention_YieldsAfterEachLookWhileYieldsAreUsed(t *testing.T) {
	var c Contention
	p := Of(AttachedPoll)
	yields := func() (n int) {
		for i := uint32(1); i <= p.Looks; i++ {
			if c.Due(&p, i) {
				n++
			}
		}
		return n
	}
	for _, s := range []struct {
		name string
		took time.Duration
		n    int
		want int
	}{
		{"alone", 0, 0, 1},
		{"after a used yield", usedTime, 1, int(p.Looks)},
		{"after some unused ones", usedTime - 1, contended - 1, int(p.Looks)},
		{"after enough unused ones", usedTime - 1, 1, 1},
	} {
		for range s.n {
			c.Yielded(s.took)
		}
		if n := yields(); n != s.want {
			t.Errorf("%s: %d yields in %d looks, want %d", s.name, n, p.Looks, s.want)
		}
	}
}

// TestContention_LooksArePowersOfTwo: of the policies that are used with it.
func TestContention_LooksArePowersOfTwo(t *testing.T) {
	for _, k := range []Kind{AttachedPoll, AttachedWait} {
		if n := Of(k).Looks; n == 0 || n&(n-1) != 0 {
			t.Errorf("kind %d: %d looks", k, n)
		}
	}
}

// TestContention_NapsSeldomerWhileYieldsAreUsed: used yields earn a nap; unused ones clear what was earned. The gap between
// naps doubles up to its limit, and starts again after a long rest.
func TestContention_NapsSeldomerWhileYieldsAreUsed(t *testing.T) {
	var c Contention
	p := Of(AttachedPoll)
	tire := func(n int, took time.Duration) {
		for range n {
			c.Yielded(took)
		}
	}
	now, gap := clock.Time(time.Hour), time.Duration(0)
	if tire(2*weary, 0); c.Next(&p, 1, now) == Nap {
		t.Error("naps though its yields are not used")
	}
	for i := range 20 {
		tire(weary-1, usedTime)
		if c.Next(&p, 1, now.Add(gap)) == Nap {
			t.Fatalf("nap %d: before it is weary", i)
		}
		tire(1, usedTime)
		if gap > 0 && c.Next(&p, 1, now.Add(gap-1)) == Nap {
			t.Fatalf("nap %d: sooner than %v after the one before", i, gap)
		}
		now = now.Add(gap)
		if step := c.Next(&p, 1, now); step != Nap {
			t.Fatalf("nap %d: %v, %v after the one before", i, step, gap)
		}
		gap = min(max(2*gap, napGap), napGapMost)
	}
	tire(weary, usedTime)
	now = now.Add(napRest + 1)
	if c.Next(&p, 1, now) != Nap {
		t.Fatal("no nap after a long rest")
	}
	tire(weary, usedTime)
	if c.Next(&p, 1, now.Add(napGap)) != Nap {
		t.Errorf("the gap after a long rest is longer than %v", napGap)
	}
	tire(weary, usedTime)
	tire(contended, 0)
	if c.Next(&p, 1, now.Add(time.Hour)) == Nap {
		t.Error("naps once alone")
	}
}

// TestContention_YieldsToLowerPrioritiesAfterLong: only a poller that has looked in vain for long asks.
func TestContention_YieldsToLowerPrioritiesAfterLong(t *testing.T) {
	var c Contention
	p := Of(AttachedPoll)
	for n, want := range map[uint32]Step{
		p.Looks: YieldThread, p.Looks * p.Goroutines: YieldAll, lowerLooks - p.Looks: YieldThread, lowerLooks: YieldLower, 1 << 31: YieldLower,
	} {
		if got := c.Next(&p, n, 0); got != want {
			t.Errorf("look %d: %v, want %v", n, got, want)
		}
	}
}

// TestBackoff_DoublesToItsLimit: for every question of the table.
func TestBackoff_DoublesToItsLimit(t *testing.T) {
	for q := range questions {
		b := Ask(q)
		want := b.First
		for range 30 {
			if got := b.Next(); got != want || got <= 0 {
				t.Fatalf("question %d: %v, want %v", q, got, want)
			}
			want = min(2*want, b.Most)
		}
		if b.Reset(); b.Next() != b.First {
			t.Errorf("question %d: not the first pause after Reset", q)
		}
	}
}

// TestWatchdog_EveryScript: whatever it finds in seven looks, the watchdog polls exactly when nobody is the poll owner and
// either nobody has driven the loop or followers need it; parks only if the same poll owner was found asleep parkAfter
// times in a row; and looks seldomer and seldomer until it is woken.
func TestWatchdog_EveryScript(t *testing.T) {
	const depth = 7
	for same := range parkAfter + 1 {
		for n := range 1 << (2 * depth) {
			var w Watchdog
			w.Begin()
			w.owners, w.same = 1, same
			o, interval, quiet := Observed{Owners: 1}, w.Interval(), same
			for rest := n; rest > 0; rest >>= 2 {
				// The script has the four most telling events; the flags of an event follow from its place as well.
				o.Owned, o.Woken, o.Followers = rest&1 != 0, rest&8 != 0, rest&4 != 0
				moved, other := rest&2 != 0, o.Owned && rest&16 != 0
				if moved {
					o.Turns++
				}
				if other {
					o.Owners++
				}
				want := Sleep
				switch {
				case !o.Owned && (!moved || o.Followers):
					want = Poll
				case o.Owned && (moved || other):
					quiet = 0
				case o.Owned:
					if quiet++; quiet >= parkAfter {
						want, quiet = Park, 0
					}
				}
				if got := w.Look(o); got != want {
					t.Fatalf("script %#x after %d looks at the same: %+v: %d, want %d", n, same, o, got, want)
				}
				if interval = min(2*interval, watchMost); o.Woken {
					interval = watchFirst
				}
				if w.Interval() != interval {
					t.Fatalf("script %#x: looks after %v, want %v", n, w.Interval(), interval)
				}
				if w.Polled(o.Turns) || !w.Polled(o.Turns+1) || o.Owned && !w.Same(o.Owners) {
					t.Fatalf("script %#x: does not know what it has seen", n)
				}
			}
		}
	}
}

// TestTable_EveryNumberSaysWhatChoseIt: every row has its measurement.
func TestTable_EveryNumberSaysWhatChoseIt(t *testing.T) {
	check := func(what, measured string) {
		if len(measured) < 40 {
			t.Errorf("%s: what chose its numbers is not said: %q", what, measured)
		}
	}
	for k, r := range table {
		check(fmt.Sprintf("kind %d", k), r.measured)
	}
	for q, r := range pauses {
		check(fmt.Sprintf("question %d", q), r.measured)
	}
	for name, doc := range constants(t) {
		check(name, doc)
	}
}

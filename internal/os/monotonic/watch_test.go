package monotonic

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

const bound = 1000 // ns, by which a watch may be off

// machine has a counter that ticks on, and a clock that is slewed.
type machine struct {
	w                      Watch
	hertz, slew, ticks, ns float64
	looks                  int // how often the clock was read
	rand                   *rand.Rand
}

func newMachine(hertz float64) *machine {
	return &machine{hertz: hertz, ns: 5e12, ticks: 1e15, rand: rand.New(rand.NewPCG(1, uint64(hertz)))}
}

func (m *machine) pass(ns float64) {
	m.ticks += ns * m.hertz / 1e9
	m.ns += ns * (1 + m.slew)
}

// read returns by how much the watch is off now. Readings of a moment are off themselves, by up to a quarter of the bound.
func (m *machine) read() int64 {
	got, ok := m.w.read(uint64(m.ticks))
	if !ok {
		got = uint64(m.ns) + m.rand.Uint64N(bound/2) - bound/4
		m.w.set(moment{uint64(m.ticks), got})
		m.looks++
	}
	return max(int64(got)-int64(m.ns), int64(m.ns)-int64(got))
}

// watch reads the clock at times for a while.
func (m *machine) watch(t *testing.T, what string, ns, every float64) {
	t.Helper()
	most := int64(0)
	for n := 0.0; n < ns; n += every {
		m.pass(every * 2 * m.rand.Float64())
		most = max(most, m.read())
	}
	if limit := bound + int64(1e9/m.hertz) + 1; most > limit && what != "" {
		t.Errorf("counter of %.0f Hz, %s: off by %d ns, want at most %d", m.hertz, what, most, limit)
	}
}

// TestWatchFollows: with counters of several speeds, and a clock that is slewed as fast as a kernel may, it is never off by more
// than a microsecond, and seldom reads the clock.
func TestWatchFollows(t *testing.T) {
	for _, hertz := range []float64{24e6, 1e9, 2.6e9, 5e9} {
		m := newMachine(hertz)
		m.watch(t, "while it learns", 5e7, 2000)
		m.looks = 0
		for range 20 {
			m.slew = (m.rand.Float64() - 0.5) * 1e-3
			m.watch(t, "slewed", 7e6, 2000)
		}
		if m.looks > 500 {
			t.Errorf("counter of %.0f Hz: the clock was read %d times in 140 ms", hertz, m.looks)
		}
		m.slew = 500e-6
		m.watch(t, "", 5e7, 2000)
		m.slew = -500e-6
		m.watch(t, "slewed the other way at once", 5e7, 2000)
		m.watch(t, "read rarely", 5e9, 4e6)
	}
}

// TestWatchAfterSleep: after a sleep in which only one of the two went on, with a counter that begins anew or goes on at another
// speed, it is right again.
func TestWatchAfterSleep(t *testing.T) {
	for _, hertz := range []float64{24e6, 2.6e9} {
		m := newMachine(hertz)
		m.watch(t, "at first", 5e7, 2000)
		m.ticks += 10 * hertz
		m.watch(t, "the counter alone went on", 5e7, 2000)
		m.ns += 1e10
		m.pass(1e6)
		m.watch(t, "the clock alone went on", 5e7, 2000)
		m.ticks = 1000
		m.watch(t, "the counter began anew", 5e7, 2000)
		m.hertz *= 1.5
		m.pass(1e6)
		m.watch(t, "", 1.2e7, 2000) // one measurement finds out
		m.watch(t, "the counter has another speed", 5e7, 2000)
		m.looks = 0
		m.watch(t, "after all that", 1e8, 2000)
		if m.looks > 400 {
			t.Errorf("counter of %.0f Hz: the clock was read %d times in 100 ms", hertz, m.looks)
		}
	}
}

// TestWatchHere: a reading lies between two of this machine's clock before and after it, but for the bound.
func TestWatchHere(t *testing.T) {
	w := NewWatch()
	// It knows the counter after two measurements, which a process that is stopped meanwhile takes later.
	learning := func() bool { return counted() && w.rate == 0 }
	for began := time.Now(); time.Since(began) < 100*time.Millisecond || learning() && time.Since(began) < await.Limit; {
		before := Now()
		now := w.Now()
		if after := Now(); now+bound < before || now > after+bound {
			t.Fatalf("%d, want between %d and %d", now, before, after)
		}
	}
	if learning() {
		t.Error("the counter can be used, and the watch does not")
	}
}

func TestWatchAllocatesNothing(t *testing.T) {
	w := NewWatch()
	if n := testing.AllocsPerRun(1000, func() { _ = w.Now() }); n != 0 {
		t.Errorf("%v allocations a reading", n)
	}
}

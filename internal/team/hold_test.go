package team

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/lacp"
)

// tick is how often frames are sent, and have to arrive: no gap is longer.
const tick = 10 * time.Millisecond

// alone is a team whose partner is silent.
type alone struct {
	*Team
	t    testing.TB
	now  clock.Time
	told int // announcements that were sent by the member that sends
}

func newAlone(t testing.TB, kind Type, n int) *alone {
	return &alone{Team: teamOf(t, kind, n, func(c *Config) { c.Fast = kind == LACP }), t: t, now: 1}
}

// live lets time go by.
func (m *alone) live(d time.Duration) {
	for end := m.now.Add(d); ; m.now = max(m.Deadline(), m.now+1) {
		m.Advance(m.now)
		for i, f := m.Frame(m.now); f != nil; i, f = m.Frame(m.now) {
			if kindOf(f) == 0x0806 && i == m.Send(m.now, sentFrom(1), 100) {
				m.told++
			}
		}
		if m.Deadline() > end {
			m.now = end
			return
		}
	}
}

// carries has what is sent leave by a member that takes what is sent to the team, and returns that.
func (m *alone) carries(when string) int {
	m.t.Helper()
	i := m.Send(m.now, sentFrom(1), 100)
	if i < 0 || !m.cfg.Type.Balances() && !m.Receive(m.now, i, sentTo(stationMAC)) {
		m.t.Fatalf("%s, at %v: a frame leaves by member %d", when, m.now, i)
	}
	return i
}

// TestSilent: with a partner that is silent another member carries as soon as the one that did leaves, loses its link or is disabled,
// whenever the others have come, and tells everybody. LACP alone would wait for three periods (IEEE 802.1AX-2014, 6.4.12).
func TestSilent(t *testing.T) {
	ends := map[string]func(*alone, int){
		"leaves":         func(m *alone, i int) { m.Leave(m.now, i) },
		"loses its link": func(m *alone, i int) { m.SetLink(m.now, i, false, 0) },
		"is disabled":    func(m *alone, i int) { m.SetDisabled(m.now, i, true) },
	}
	for name, end := range ends {
		for _, after := range []time.Duration{0, 1, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, time.Minute} {
			m := newAlone(t, LACP, 1)
			m.live(time.Minute)
			i, err := m.Join(Member{MAC: memberMAC(7)})
			if err != nil {
				t.Fatal(err)
			}
			m.SetLink(m.now, i, true, gigabit)
			m.live(after)
			before := m.carries("at first")
			m.told = 0
			end(m, before)
			then := m.carries("when one " + name)
			if m.live(0); then == before || m.told != 1 || m.Counters().FailOvers != 1 {
				t.Errorf("one %s %v after another joined: %d carries, which told everybody %d times", name, after, then, m.told)
			}
			for range 1000 {
				m.live(tick)
				if again := m.carries("later"); again != then {
					t.Fatalf("one %s %v after another joined: %d carries, and then %d", name, after, then, again)
				}
			}
		}
	}
}

// TestSilent_Known: a member whose partner is known to be silent is taken before one that has just come back.
func TestSilent_Known(t *testing.T) {
	m := newAlone(t, LACP, 3)
	m.live(time.Minute)
	m.SetLink(m.now, 0, false, 0)
	m.SetLink(m.now, 0, true, gigabit)
	m.carries("when one is left")
	m.SetLink(m.now, 1, false, 0)
	if i := m.carries("when another one is left"); i != 2 {
		t.Errorf("member %d carries, want that which was up", i)
	}
}

// TestBecome_Silent: what a team of any type carries goes on when it gets type 3AD at a switch that knows nothing of it, and stays where
// it is; likewise when it gets the type back.
func TestBecome_Silent(t *testing.T) {
	for kind := AFT; kind <= SLA; kind++ {
		m := newAlone(t, kind, 2)
		m.live(time.Minute)
		m.SetLink(m.now, 0, false, 0) // the second one is active
		m.SetLink(m.now, 0, true, gigabit)
		for _, next := range []Type{LACP, kind} {
			if err := m.Become(m.now, next, next == LACP); err != nil {
				t.Fatal(err)
			}
			last := -1
			for range 1000 {
				i := m.carries(kind.String() + " to " + next.String())
				if last >= 0 && i != last && next == LACP && kind != SLA {
					t.Fatalf("%v to 3AD: a flow moves from %d to %d", kind, last, i)
				}
				last = i
				m.live(tick)
			}
		}
	}
}

// goOn has frames of many flows pass both ways between the ends of a couple for a while.
func (c *couple) goOn(d time.Duration, when string) {
	c.t.Helper()
	for end := c.now.Add(d); c.now < end; c.run(tick) {
		for e, m := range c.ends {
			for p := range uint16(16) {
				i := m.Send(c.now, sentFrom(p), 100)
				if i < 0 || !c.ends[1-e].Receive(c.now, i, sentTo(stationMAC)) {
					c.t.Fatalf("%s, at %v: what end %d sends by member %d does not arrive", when, c.now, e, i)
				}
			}
		}
	}
}

// TestBecome_BothEnds: what two teams carry for each other goes on, without a gap, while one after the other gets type 3AD and they agree.
func TestBecome_BothEnds(t *testing.T) {
	for _, ms := range []time.Duration{0, 100, 1000, 2500, 4000, 20_000} {
		later := ms * time.Millisecond
		c := newCouple(t, 2)
		for _, m := range c.ends {
			if err := m.Become(c.now, AFT, false); err != nil {
				t.Fatal(err)
			}
		}
		c.goOn(time.Second, "before")
		for _, m := range c.ends {
			if err := m.Become(c.now, LACP, true); err != nil {
				t.Fatal(err)
			}
			c.goOn(later, "one end has the type")
		}
		c.goOn(10*time.Second, "both ends have the type")
		if n := c.active(); n != [2]int{2, 2} {
			t.Errorf("the second end %v later: %v members are active, want both", later, n)
		}
	}
}

// TestBecome_OneEnd: when one end gets another type, it takes what the other spreads over all members until that finds out.
func TestBecome_OneEnd(t *testing.T) {
	c := newCouple(t, 2)
	c.run(10 * time.Second)
	if err := c.ends[0].Become(c.now, AFT, false); err != nil {
		t.Fatal(err)
	}
	c.goOn(2*time.Second, "one end has another type")
}

// TestHold_Refused: a partner that speaks and wants no member is obeyed before long.
func TestHold_Refused(t *testing.T) {
	m := newAlone(t, AFT, 1)
	if err := m.Become(m.now, LACP, true); err != nil {
		t.Fatal(err)
	}
	other := newAlone(t, LACP, 1)
	other.SetDisabled(0, 0, true)
	other.SetDisabled(0, 0, false)
	refuses := func() {
		if f := other.Farewell(0); f != nil {
			f[6]++ // of another port
			m.Receive(m.now, 0, f)
		}
	}
	for range 20 {
		m.live(lacp.FastPeriod / 2)
		refuses()
	}
	if i := m.Send(m.now, sentFrom(1), 100); i >= 0 {
		t.Errorf("a frame leaves by member %d: %v", i, m.Status(0).LACP)
	}
}

// TestFarewell: a partner that speaks sends nothing by a member any more as soon as that leaves, whose link may stay up.
func TestFarewell(t *testing.T) {
	c := newCouple(t, 3)
	c.run(10 * time.Second)
	f := c.ends[0].Farewell(1)
	c.ends[1].Receive(c.now, 1, f)
	c.ends[0].Leave(c.now, 1)
	if n := c.active(); n != [2]int{2, 2} {
		t.Errorf("%v members are active, want 2", n)
	}
	c.goOn(10*time.Second, "without the second")
	if f := c.ends[0].Farewell(1); f != nil || teamOf(t, AFT, 1).Farewell(0) != nil {
		t.Error("one that speaks no LACP says farewell")
	}
}

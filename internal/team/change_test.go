package team

import (
	"errors"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/team/carrier"
	"github.com/softvpi/softvpi/wire/eth"
)

// spreads are the members that the flows of a station leave by.
func spreads(m *Team, now clock.Time) (by [256]int) {
	for p := range by {
		by[p] = m.Send(now, sentFrom(uint16(p)), 100)
	}
	return by
}

// TestJoin_Standby: who joins carries nothing that another carries until its link is proven, and takes over when that one leaves as when it
// fails; the team keeps its address.
func TestJoin_Standby(t *testing.T) {
	m := teamOf(t, AFT, 1)
	mac := m.MAC()
	i, err := m.Join(Member{MAC: memberMAC(7), Primary: true})
	if err != nil || i != 1 {
		t.Fatal(i, err)
	}
	now := clock.Time(time.Hour)
	m.SetLink(now, 1, true, gigabit)
	if at := m.Send(now, sentFrom(1), 100); at != 0 || m.Status(1).Role != Backup || m.Status(1).Status != Connected {
		t.Errorf("it is %+v at first, and a frame leaves by member %d", m.Status(1), at)
	}
	now = now.Add(carrier.Proves)
	m.Advance(now)
	if at := m.Send(now, sentFrom(1), 100); at != 1 {
		t.Errorf("a frame leaves by member %d, want the primary one", at)
	}
	m.Leave(now, 1)
	if at, c := m.Send(now, sentFrom(1), 100), m.Counters(); at != 0 || c.FailOvers != 1 || m.MAC() != mac {
		t.Errorf("a frame leaves by member %d from %v, counters %+v", at, m.MAC(), c)
	}
	for _, n := range m.News() {
		if n.Member == 1 && n.Status == Disconnected {
			t.Errorf("it is told of one that has left: %v", n)
		}
	}
	m.Leave(now, 0)
	if up, _ := m.Up(); up || m.Send(now, sentFrom(1), 100) != -1 {
		t.Error("a team without members is up")
	}
	if i, err = m.Join(Member{MAC: memberMAC(0)}); err != nil {
		t.Fatal(err)
	}
	if m.SetLink(now, i, true, gigabit); m.Send(now, sentFrom(1), 100) != i {
		t.Errorf("the only member is %+v", m.Status(i))
	}
}

// TestLeave_OthersStay: flows of members that stay leave by them as before, whoever leaves.
func TestLeave_OthersStay(t *testing.T) {
	for _, kind := range []Type{SLB, RLB, ALB, SLA} {
		m := teamOf(t, kind, 3)
		before := spreads(m, 1)
		m.Leave(2, 1)
		moved := 0
		for p, i := range spreads(m, 3) {
			switch {
			case before[p] == 1 && i != 0 && i != 2, before[p] != 1 && i != before[p]:
				t.Fatalf("%v: flow %d moves from member %d to %d", kind, p, before[p], i)
			case before[p] == 1:
				moved++
			}
		}
		if moved == 0 {
			t.Errorf("%v: nothing left by the member that left", kind)
		}
	}
}

// TestJoin_LACP: a link that joins a team of type 3AD is agreed on with the partner while the others go on.
func TestJoin_LACP(t *testing.T) {
	c := newCouple(t, 2)
	c.run(5 * time.Second)
	all := func(when string, want int) {
		t.Helper()
		if n := c.active(); n != [2]int{want, want} {
			t.Errorf("%s: %v members are active, want %d", when, n, want)
		}
	}
	for e, m := range c.ends {
		mac := memberMAC(2)
		mac[4] = byte(e)
		i, err := m.Join(Member{MAC: mac})
		if err != nil {
			t.Fatal(err)
		}
		m.SetLink(c.now, i, true, gigabit)
	}
	all("at first", 2)
	c.run(5 * time.Second)
	all("agreed", 3)
	for _, m := range c.ends {
		m.Leave(c.now, 0)
	}
	all("without the first", 2)
	c.run(5 * time.Second)
	all("later", 2)
}

// TestJoin_Refused: who cannot be a member does not become one.
func TestJoin_Refused(t *testing.T) {
	for field, m := range map[string]*Team{
		"Members": teamOf(t, SFT, 2), "Members[1].MAC": teamOf(t, AFT, 1),
		"Members[1].Primary": teamOf(t, AFT, 1, func(c *Config) { c.Members[0].Primary, c.Members[0].MAC = true, memberMAC(1) }),
	} {
		var e *Error
		if _, err := m.Join(Member{MAC: memberMAC(0), Primary: true}); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	m := teamOf(t, SLA, MostMembers)
	if _, err := m.Join(Member{MAC: memberMAC(9)}); err == nil || m.Members() != MostMembers {
		t.Errorf("a ninth: %v", err)
	}
	m.Leave(0, 3)
	if i, err := m.Join(Member{MAC: memberMAC(9)}); err != nil || i != 3 {
		t.Errorf("at place %d: %v", i, err)
	}
}

// TestBecome: a team goes on with its members, its address and what is known of their links when it gets another type, and tells everybody:
// each type from each other.
func TestBecome(t *testing.T) {
	for from := AFT; from <= SLA; from++ {
		for to := AFT; to <= SLA; to++ {
			m := teamOf(t, from, 2, func(c *Config) { c.Members[1].Primary = true })
			now := clock.Time(0)
			live := func() {
				for end := now.Add(10 * time.Second); now < end; now = now.Add(100 * time.Millisecond) {
					m.Advance(now)
					for _, f := m.Frame(now); f != nil; _, f = m.Frame(now) {
						m.News()
					}
				}
			}
			live()
			mac, told := m.MAC(), m.Counters().Announced
			m.SetDisabled(now, 0, true)
			if err := m.Become(now, to, to == LACP); err != nil {
				t.Fatal(from, to, err)
			}
			live()
			if at, c := m.Send(now, sentFrom(1), 100), m.Counters(); at != 1 || m.MAC() != mac || c.Announced == told && to != LACP {
				t.Errorf("%v to %v: a frame leaves by member %d, the MAC is %v, counters %+v", from, to, at, m.MAC(), c)
			}
			m.SetDisabled(now, 0, false)
			m.SetDisabled(now, 1, true)
			live()
			if at := m.Send(now, sentFrom(1), 100); at != 0 {
				t.Errorf("%v to %v: a frame leaves by member %d, want the other", from, to, at)
			}
		}
	}
	m := teamOf(t, AFT, 3)
	var e *Error
	if err := m.Become(1, SFT, false); !errors.As(err, &e) || e.Field != "Members" || m.Send(1, sentFrom(1), 100) < 0 {
		t.Errorf("three members of SFT: %v", err)
	}
}

// TestBecome_LACP: two teams that agree on nothing as SLA agree on all members as 3AD, those that take places of others too, and the other
// way.
func TestBecome_LACP(t *testing.T) {
	c := newCouple(t, 3)
	c.run(5 * time.Second)
	for _, m := range c.ends {
		m.SetStations(nil)
		m.Leave(c.now, 0)
	}
	for _, kind := range []Type{SLA, LACP} {
		for _, m := range c.ends {
			if err := m.Become(c.now, kind, kind == LACP); err != nil {
				t.Fatal(err)
			}
		}
		c.run(10 * time.Second)
		if n := c.active(); n != [2]int{2, 2} {
			t.Errorf("%v: %v members are active, want two", kind, n)
		}
	}
}

// TestAddress: a team has the address that it is given, unless a member gives its own.
func TestAddress(t *testing.T) {
	given := eth.MAC{2, 9, 9, 9, 9, 9}
	if m := teamOf(t, AFT, 2, func(c *Config) { c.Address = given }); m.MAC() != given {
		t.Errorf("it has %v", m.MAC())
	}
	if m := teamOf(t, AFT, 2, func(c *Config) { c.Address, c.Members[1].GivesMAC = given, true }); m.MAC() != memberMAC(1) {
		t.Errorf("it has %v, want that of a member", m.MAC())
	}
	var e *Error
	c := Config{Type: AFT, Address: eth.MAC{1}}
	if err := c.Check(); !errors.As(err, &e) || e.Field != "Address" {
		t.Errorf("a group: %v", err)
	}
}

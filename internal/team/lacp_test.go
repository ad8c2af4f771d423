package team

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/lacp"
	slow "github.com/softvpi/softvpi/wire/lacp"
)

// couple are two teams of type 3AD, each the other's partner, with a line from member to member.
type couple struct {
	t    testing.TB
	now  clock.Time
	ends [2]*Team
	cut  map[int]bool // lines that lose all frames, while they are up
}

func newCouple(t testing.TB, n int) *couple {
	c := &couple{t: t, cut: map[int]bool{}}
	for e := range c.ends {
		c.ends[e] = teamOf(t, LACP, n, func(cfg *Config) {
			cfg.Fast = true
			for i := range cfg.Members {
				cfg.Members[i].MAC[4] = byte(e)
			}
		})
	}
	return c
}

// run carries what is sent until a time.
func (c *couple) run(d time.Duration) {
	end := c.now.Add(d)
	for {
		next := clock.Never
		for e, m := range c.ends {
			m.Advance(c.now)
			for i, f := m.Frame(c.now); f != nil; i, f = m.Frame(c.now) {
				if !c.cut[i] && c.ends[1-e].Receive(c.now, i, f) && c.ends[1-e].lacp != nil && kindOf(f) == slow.EtherType {
					c.t.Fatal("a frame of LACP is handed up")
				}
			}
		}
		for _, m := range c.ends {
			next = clock.Min(next, m.Deadline())
		}
		if next > end {
			break
		}
		c.now = max(next, c.now+1)
	}
	c.now = end
}

// active returns how many members send, by end.
func (c *couple) active() (n [2]int) {
	for e, m := range c.ends {
		for i := range m.Members() {
			if m.Status(i).Role == Active {
				n[e]++
			}
		}
	}
	return n
}

// TestLACP: members are active once both ends agree; one whose link is lost leaves at once, one whose partner falls silent after three
// periods (IEEE 802.1AX-2014, 6.4.4), and both come back.
func TestLACP(t *testing.T) {
	c := newCouple(t, 3)
	c.run(5 * time.Second)
	if n := c.active(); n != [2]int{3, 3} {
		t.Fatalf("%v members are active, want all", n)
	}
	if s := c.ends[0].Status(1); s.LACP == nil || s.LACP.Partner.System != c.ends[1].MAC() {
		t.Errorf("member 1's partner is %+v, want %v", s.LACP, c.ends[1].MAC())
	}
	for e := range c.ends {
		c.ends[e].SetLink(c.now, 0, false, 0)
	}
	if n := c.active(); n != [2]int{2, 2} {
		t.Errorf("%v members are active without a link of three, want 2", n)
	}
	c.cut[1] = true
	c.run(lacp.ShortTimeout + lacp.FastPeriod)
	if n := c.active(); n != [2]int{1, 1} {
		t.Errorf("%v members are active when one more is silent, want 1", n)
	}
	c.cut[1] = false
	for e := range c.ends {
		c.ends[e].SetLink(c.now, 0, true, gigabit)
	}
	c.run(5 * time.Second)
	if n := c.active(); n != [2]int{3, 3} {
		t.Errorf("%v members are active in the end, want all", n)
	}
}

// TestLACP_Receive: a member that does not collect takes nothing; one that does takes frames to any address.
func TestLACP_Receive(t *testing.T) {
	c := newCouple(t, 2)
	m := c.ends[0]
	if m.Receive(0, 0, sentTo(stationMAC)) || m.Send(0, sentFrom(1), 100) != -1 {
		t.Error("a frame passes before the ends agree")
	}
	c.run(5 * time.Second)
	for i := range 2 {
		if !m.Receive(c.now, i, sentTo(stationMAC)) || !m.Receive(c.now, i, sentTo(strangeMAC)) {
			t.Errorf("member %d takes nothing", i)
		}
	}
}

// TestLACP_Disabled: the partner hears at once of a member that is disabled, and sends nothing there.
func TestLACP_Disabled(t *testing.T) {
	c := newCouple(t, 2)
	c.run(5 * time.Second)
	c.ends[0].SetDisabled(c.now, 1, true)
	c.run(0)
	if n := c.active(); n != [2]int{1, 1} {
		t.Errorf("%v members are active, want 1", n)
	}
}

// TestLACP_Choice: a team whose members lead to two partners keeps the first that spoke, or has the one to which more lead.
func TestLACP_Choice(t *testing.T) {
	for choice, want := range map[lacp.Choice][]Role{lacp.Stable: {Active, Backup, Backup}, lacp.Count: {Backup, Active, Active},
		lacp.Bandwidth: {Backup, Active, Active}} {
		m := teamOf(t, LACP, 3, func(c *Config) { c.Fast, c.Choice = true, choice })
		m.SetLink(0, 1, false, 0)
		m.SetLink(0, 2, false, 0)
		partner := func(n, members int) *Team {
			return teamOf(t, LACP, members, func(c *Config) {
				c.Fast = true
				for i := range c.Members {
					c.Members[i].MAC[3] = byte(n)
				}
			})
		}
		one, two := partner(1, 1), partner(2, 2)
		others := []struct {
			*Team
			at int
		}{{one, 0}, {two, 0}, {two, 1}}
		run := func(from, until clock.Time) {
			for now := from; now < until; now = now.Add(tick) {
				for _, x := range []*Team{m, one, two} {
					x.Advance(now)
				}
				for i, f := m.Frame(now); f != nil; i, f = m.Frame(now) {
					others[i].Receive(now, others[i].at, f)
				}
				for i, f := one.Frame(now); f != nil; i, f = one.Frame(now) {
					m.Receive(now, i, f)
				}
				for i, f := two.Frame(now); f != nil; i, f = two.Frame(now) {
					m.Receive(now, i+1, f)
				}
			}
		}
		half := clock.Time(10 * time.Second)
		run(0, half)
		m.SetLink(half, 1, true, gigabit)
		m.SetLink(half, 2, true, gigabit)
		run(half, 2*half)
		for i, role := range want {
			if s := m.Status(i); s.Role != role {
				t.Errorf("%v: member %d is %v, want %v: %v", choice, i, s.Role, role, s.LACP)
			}
		}
	}
}

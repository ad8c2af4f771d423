package lacp

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lacp"
)

// joined are two systems whose ports are links, in virtual time.
type joined struct {
	testing.TB
	now  clock.Time
	ends [2]*System
	// cut are links that lose what one end sends, by end and link.
	cut [2]map[int]bool
	// loss is the share of data units that are lost.
	loss   float64
	random *rand.Rand
	sent   [2][]int // data units, by end and link
}

// one returns a system with one group of n ports.
func one(t testing.TB, last byte, n int, change func(*Config)) *System {
	t.Helper()
	cfg := Config{System: eth.MAC{2, 0, 0, 0, 0, last}, Groups: []Group{{Key: uint16(last)}}}
	for i := range n {
		cfg.Groups[0].Ports = append(cfg.Groups[0].Ports, Port{Number: uint16(i + 1), MAC: eth.MAC{2, 0, 0, 0, byte(i + 1), last}})
	}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// join connects two systems and takes all links up.
func join(t testing.TB, a, b *System) *joined {
	j := &joined{TB: t, ends: [2]*System{a, b}, cut: [2]map[int]bool{{}, {}}, random: rand.New(rand.NewPCG(1, 2))}
	for e, s := range j.ends {
		j.sent[e] = make([]int, s.Ports())
	}
	for i := range a.Ports() {
		j.link(i, true)
	}
	return j
}

func (j *joined) link(i int, up bool) {
	for _, s := range j.ends {
		s.SetUp(j.now, i, up, 10e9)
	}
}

// exchange carries all that is to be sent now.
func (j *joined) exchange() {
	for again := true; again; {
		again = false
		for e, s := range j.ends {
			for {
				i, f := s.Transmit(j.now)
				if f == nil {
					break
				}
				again = true
				j.sent[e][i]++
				if j.cut[e][i] || j.random.Float64() < j.loss {
					continue
				}
				if err := j.ends[1-e].Receive(j.now, i, f[eth.EthernetLen:]); err != nil {
					j.Fatal(err)
				}
			}
		}
	}
}

// run lets a time pass.
func (j *joined) run(d time.Duration) {
	until := j.now.Add(d)
	for turns := 0; ; turns++ {
		if turns > 1_000_000 {
			j.Fatalf("at %v the deadlines do not move on", time.Duration(j.now))
		}
		for _, s := range j.ends {
			s.Advance(j.now)
		}
		j.exchange()
		next := clock.Min(j.ends[0].Deadline(), j.ends[1].Deadline())
		if next > until {
			j.now = until
			return
		}
		j.now = max(j.now, next)
	}
}

// carrying returns the links by which each end distributes.
func (j *joined) carrying() (a, b []bool) {
	for i := range j.ends[0].Ports() {
		_, x := j.ends[0].Carries(i)
		_, y := j.ends[1].Carries(i)
		a, b = append(a, x), append(b, y)
	}
	return a, b
}

// want checks by which links both ends distribute, a digit each.
func (j *joined) want(when, links string) {
	j.Helper()
	a, b := j.carrying()
	text := func(all []bool) (s string) {
		for _, x := range all {
			s += map[bool]string{false: "0", true: "1"}[x]
		}
		return s
	}
	if text(a) != links || text(b) != links {
		j.Errorf("%s: the ends distribute by the links %s and %s, want %s\n%v\n%v", when, text(a), text(b), links, j.status(0), j.status(1))
	}
}

func (j *joined) status(e int) (all []string) {
	for i := range j.ends[e].Ports() {
		all = append(all, j.ends[e].Status(i).String())
	}
	return all
}

// 6.4.1: two systems aggregate their links, whichever of them is passive or fast, within the wait of 2 s and two periods; and what one
// does not hear of is not sent by: no end distributes that the other does not collect.
func TestSystemsAggregate(t *testing.T) {
	for _, c := range []struct {
		name                     string
		passiveA, passiveB, fast bool
		links                    string
	}{
		{"both active", false, false, false, "1111"},
		{"both active and fast", false, false, true, "1111"},
		{"one passive", true, false, false, "1111"},
		{"the other passive, fast", false, true, true, "1111"},
		{"both passive: one link by itself", true, true, false, "1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := one(t, 1, 4, func(x *Config) { x.Groups[0].Passive, x.Groups[0].Fast = c.passiveA, c.fast })
			b := one(t, 2, 4, func(x *Config) { x.Groups[0].Passive, x.Groups[0].Fast = c.passiveB, c.fast })
			j := join(t, a, b)
			for range 60 {
				j.run(100 * time.Millisecond)
				for i := range 4 {
					collects, _ := b.Carries(i)
					if _, sends := a.Carries(i); sends && !collects {
						t.Fatalf("link %d: one end sends, and the other does not collect: %v, %v", i, j.status(0), j.status(1))
					}
				}
			}
			j.want("after 6 s", c.links)
			j.run(10 * time.Minute)
			j.want("after 10 min", c.links)
		})
	}
}

// 6.4.13: the period is the one that the partner wants: every second, or every 30 s.
func TestPeriodIsThePartners(t *testing.T) {
	a := one(t, 1, 1, func(c *Config) { c.Groups[0].Fast = true }) // it wants to hear every second
	b := one(t, 2, 1, nil)                                         // and this one every 30 s
	j := join(t, a, b)
	j.run(time.Minute)
	j.sent = [2][]int{{0}, {0}}
	j.run(10 * time.Minute)
	if fast, slow := j.sent[1][0], j.sent[0][0]; fast != 600 || slow != 20 {
		t.Errorf("in 10 min %d data units to the end that is fast, and %d to the other; want 600 and 20", fast, slow)
	}
}

// 6.4.14: a link whose partner says nothing is not aggregated with those of one that speaks; it is used by itself when no other is left,
// and left as soon as one comes back.
func TestSilentPartner(t *testing.T) {
	j := join(t, one(t, 1, 2, nil), one(t, 2, 2, nil))
	j.cut[1][1] = true // of link 1 nothing is heard
	j.run(10 * time.Second)
	if _, sends := j.ends[0].Carries(1); sends {
		t.Errorf("the silent link is used: %v", j.status(0))
	}
	if _, sends := j.ends[0].Carries(0); !sends {
		t.Errorf("the other is not: %v", j.status(0))
	}
	j.link(0, false)
	j.run(10 * time.Second)
	if _, sends := j.ends[0].Carries(1); !sends {
		t.Errorf("the silent link, which is alone, is not used: %v", j.status(0))
	}
	j.link(0, true)
	j.run(40 * time.Second)
	if _, sends := j.ends[0].Carries(0); !sends {
		t.Errorf("the partner that is back is not used: %v", j.status(0))
	}
	if _, sends := j.ends[0].Carries(1); sends {
		t.Errorf("the silent link is used beside it: %v", j.status(0))
	}
	j.cut[1][1] = false
	j.run(10 * time.Second)
	j.want("when all speak", "11")
}

// 6.3.6: links are aggregated if their partners have the same system and key. Of two partners the one with more links has the
// aggregator; by stable it keeps that as long as it has one, by count only while no other has more.
func TestWrongKeyAndChoice(t *testing.T) {
	for _, c := range []struct {
		choice Choice
		after  string
	}{{Stable, "100"}, {Count, "011"}} {
		t.Run(c.choice.String(), func(t *testing.T) {
			a := one(t, 1, 3, func(x *Config) { x.Groups[0].Choice = c.choice })
			// One system with two groups: links 0 and 1 have the key 2, and link 2 another.
			b := one(t, 2, 3, func(x *Config) {
				p := x.Groups[0].Ports
				x.Groups = []Group{{Key: 2, Ports: p[:2]}, {Key: 7, Ports: p[2:]}}
			})
			j := join(t, a, b)
			j.run(40 * time.Second)
			j.want("with a wrong key", "110")
			j.link(1, false)
			j.run(40 * time.Second)
			if _, sends := a.Carries(0); !sends {
				t.Errorf("one to one: the first is left: %v", j.status(0))
			}
			j.want("one to one", "100")
			if s := a.Status(2); s.Selected != "standby" || s.Mux != "waiting" {
				t.Errorf("the link with the wrong key is %s and %s", s.Selected, s.Mux)
			}
			// A second system's links come: now the other key has more.
			b2 := one(t, 2, 3, func(x *Config) {
				p := x.Groups[0].Ports
				x.Groups = []Group{{Key: 2, Ports: p[:1]}, {Key: 7, Ports: p[1:]}}
			})
			j.ends[1] = b2
			for i := range 3 {
				b2.SetUp(j.now, i, i != 1, 10e9)
			}
			j.link(1, true)
			j.run(2 * time.Minute)
			j.want("when the other key has more", c.after)
		})
	}
}

// 6.4.14 with rates: by bandwidth one fast link goes before two slow ones.
func TestChoiceByBandwidth(t *testing.T) {
	for choice, want := range map[Choice]string{Bandwidth: "001", Count: "110"} {
		a := one(t, 1, 3, func(x *Config) { x.Groups[0].Choice = choice })
		b := one(t, 2, 3, func(x *Config) {
			p := x.Groups[0].Ports
			x.Groups = []Group{{Key: 2, Ports: p[:2]}, {Key: 7, Ports: p[2:]}}
		})
		j := join(t, a, b)
		for i, rate := range []uint64{1e9, 1e9, 10e9} {
			a.SetUp(j.now, i, true, rate)
		}
		j.run(time.Minute)
		j.want(choice.String(), want)
	}
}

// A link that is lost is left at once, and one that flaps comes back after the wait; the others carry all the time.
func TestLinkLossAndFlap(t *testing.T) {
	j := join(t, one(t, 1, 2, nil), one(t, 2, 2, nil))
	j.run(10 * time.Second)
	j.want("at first", "11")
	j.link(0, false)
	j.exchange()
	j.want("at once after the loss", "01")
	j.run(time.Minute)
	j.link(0, true)
	j.want("at once after it is back", "01")
	j.run(5 * time.Second)
	j.want("later", "11")
	for range 20 {
		j.link(1, false)
		j.run(50 * time.Millisecond)
		j.link(1, true)
		j.run(50 * time.Millisecond)
		if _, sends := j.ends[0].Carries(0); !sends {
			t.Fatal("the link that does not flap is left")
		}
		if _, sends := j.ends[0].Carries(1); sends {
			t.Fatal("a link that flaps faster than the wait is used")
		}
	}
	j.run(10 * time.Second)
	j.want("when it flaps no more", "11")
}

// 6.4.12: a partner that falls silent while the link is up is left after three periods: 3 s if it is asked to be fast, 90 s otherwise;
// not before.
func TestPartnerFallsSilent(t *testing.T) {
	for fast, timeout := range map[bool]time.Duration{true: ShortTimeout, false: LongTimeout} {
		j := join(t, one(t, 1, 2, func(c *Config) { c.Groups[0].Fast = fast }), one(t, 2, 2, nil))
		j.run(10 * time.Second)
		j.want("at first", "11")
		j.run(30 * time.Second)
		j.cut[1][1] = true
		period := map[bool]time.Duration{true: FastPeriod, false: SlowPeriod}[fast]
		j.run(timeout - period - time.Millisecond)
		if _, sends := j.ends[0].Carries(1); !sends {
			t.Errorf("fast %v: the link is left too early", fast)
		}
		j.run(period + 2*time.Millisecond)
		if _, sends := j.ends[0].Carries(1); sends {
			t.Errorf("fast %v: the link is used after %v of silence", fast, timeout)
		}
		if _, sends := j.ends[0].Carries(0); !sends {
			t.Errorf("fast %v: the other is left too", fast)
		}
		if n := j.ends[0].Status(1).Timeouts; n == 0 {
			t.Errorf("fast %v: no timeout is counted", fast)
		}
	}
}

// Data units that are lost delay the aggregation, and do not prevent it; a loss of less than three in a row is not noticed.
func TestLossOfDataUnits(t *testing.T) {
	fast := func(c *Config) { c.Groups[0].Fast = true }
	j := join(t, one(t, 1, 4, fast), one(t, 2, 4, fast))
	j.loss = 0.3
	j.run(5 * time.Minute)
	j.loss = 0
	j.run(10 * time.Second)
	j.want("after losses", "1111")
	for i := range 4 {
		j.cut[0][i], j.cut[1][i] = true, true
	}
	j.run(1900 * time.Millisecond)
	j.cut = [2]map[int]bool{{}, {}}
	j.want("after two that were lost", "1111")
	j.run(time.Minute)
	j.want("later", "1111")
}

// 6.4.16: no more than three data units leave a port in a second, however often there is something to say.
func TestNoMoreThanThreeInASecond(t *testing.T) {
	s := one(t, 1, 1, nil)
	s.SetUp(0, 0, true, 10e9)
	var at []clock.Time
	for now := clock.Time(0); now < clock.Time(20*time.Second); now = now.Add(10 * time.Millisecond) {
		u := lacp.PDU{Actor: lacp.Participant{System: eth.MAC{2, 0, 0, 0, 0, 9}, Key: uint16(now / 1e7)}}
		u.Actor.State = lacp.Activity | lacp.Aggregation
		if err := s.Receive(now, 0, u.Frame(eth.MAC{})[eth.EthernetLen:]); err != nil { // another key each time: always news
			t.Fatal(err)
		}
		s.Advance(now)
		for _, f := s.Transmit(now); f != nil; _, f = s.Transmit(now) {
			at = append(at, now)
		}
	}
	if len(at) < 20 {
		t.Fatalf("%d data units in 20 s", len(at))
	}
	for i := mostUnits; i < len(at); i++ {
		if d := at[i].Sub(at[i-mostUnits]); d < FastPeriod {
			t.Fatalf("four data units within %v", d)
		}
	}
}

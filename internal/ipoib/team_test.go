package ipoib

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/team/carrier"
	"github.com/softvpi/softvpi/wire/eth"
	"pgregory.net/rapid"
)

// crew is a team of the hosts of a network, as its owner runs it: it carries out orders, and stands for the system behind it.
type crew struct {
	*Team
	w        *network
	members  []*host
	down     []bool // ports that are not active
	prefixes []netip.Prefix
	groups   []netip.Addr // that the system listens to
	held     Held
	got      [][]byte // what the system has got
}

func newCrew(w *network, cfg TeamConfig) *crew {
	w.t.Helper()
	team, err := NewTeam(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	c := &crew{Team: team, w: w, members: w.hosts[:cfg.Members], down: make([]bool, cfg.Members), prefixes: []netip.Prefix{
		netip.PrefixFrom(v4(100), 24), netip.PrefixFrom(v6(100), 64)}}
	for _, m := range c.members {
		m.SetAddresses(w.now, nil)
	}
	return c
}

// run runs the network and the team for the time d, in steps that are shorter than any of the team's times.
func (c *crew) run(d time.Duration) {
	const step = 20 * time.Millisecond
	for end := c.w.now.Add(d); c.w.now < end; {
		c.w.run(step)
		for i, m := range c.members {
			c.SetLink(c.w.now, i, m.State() == Up)
			c.take(i, m)
		}
		c.Advance(c.w.now)
		for _, o := range c.Orders() {
			switch m := c.members[o.Member]; o.Kind {
			case Yields:
				c.held = m.Yield(c.w.now)
			case TakesOver:
				m.TakeOver(c.w.now, c.prefixes, nil, c.held)
			case Announces:
				m.Announce(c.w.now)
			}
		}
	}
}

// take hands up what has arrived at a member, as its owner does, and answers the questions of the multicast monitor as the system does.
func (c *crew) take(i int, m *host) {
	for _, p := range m.got {
		if i == c.Active() || c.w.now < c.Until(i) && Alone(p) {
			c.got = append(c.got, p)
		}
	}
	asked := len(m.delivered) > 0
	m.got, m.delivered = nil, nil
	if i == c.Active() && asked {
		c.report()
	}
}

// report is the system's report of what it listens to.
func (c *crew) report() {
	var records []eth.GroupRecord
	for _, g := range c.groups {
		records = append(records, eth.GroupRecord{Type: eth.ModeIsExclude, Group: g})
	}
	if len(records) > 0 && c.Active() >= 0 {
		c.w.send(c.members[c.Active()], reports(records))
	}
}

// plug pulls the cable of a member's port, or puts it in again.
func (c *crew) plug(i int, in bool) {
	c.down[i] = !in
	p := c.w.port(c.members[i])
	p.Active = p.Active && in
	c.members[i].SetPort(c.w.now, p)
}

// memberships are the groups of the system that the members are attached to.
func (c *crew) memberships(i int) (list []netip.Addr) {
	for _, a := range candidates {
		mgid, _ := groupMGID(a, linkLocalScope, 0xffff)
		if c.members[i].attached[mgid] != 0 {
			list = append(list, a)
		}
	}
	return list
}

// candidates are groups that a system may listen to.
var candidates = []netip.Addr{netip.MustParseAddr("239.1.1.1"), netip.MustParseAddr("239.1.1.2"), netip.MustParseAddr("239.7.7.7")}

// TestTeam_FailsOver: what the system sends and is sent goes by the active member, within 100 ms of its failure by another one, with the
// same addresses and groups; and by the primary one again a second after that is back, unless the team does not fail back.
func TestTeam_FailsOver(t *testing.T) {
	for _, stays := range []bool{false, true} {
		w := newNetwork(t, 3, subnet.Config{}, defaults)
		c := newCrew(w, TeamConfig{Members: 2, Primary: 0, NoFailBack: stays})
		c.groups = candidates[:2]
		peer := w.hosts[2]
		c.run(5 * time.Second)
		c.report()
		for round, x := range []struct {
			member int // whose port changes
			in     bool
			wait   time.Duration
			active int
		}{{0, true, 0, 0}, {0, false, 100 * time.Millisecond, 1}, {0, true, 500 * time.Millisecond, 1}, {0, true, 10 * time.Second, 0},
			{1, false, 100 * time.Millisecond, 0}} {
			if want := x.active; stays && round == 3 {
				x.active = 1
			} else {
				x.active = want
			}
			c.plug(x.member, x.in)
			c.run(x.wait)
			if c.Active() != x.active {
				t.Fatalf("NoFailBack %v, round %d: member %d is active, want %d", stays, round, c.Active(), x.active)
			}
			for n, pair := range [][2]netip.Addr{{v4(100), v4(2)}, {v6(100), v6(2)}} {
				there, back := udp(pair[0], pair[1], 10*round+n), udp(pair[1], pair[0], 10*round+n+5)
				c.got, peer.got = nil, nil
				w.send(c.members[c.Active()], there)
				w.send(peer, back)
				c.run(100 * time.Millisecond)
				if len(peer.got) != 1 || !bytes.Equal(peer.got[0], there) {
					t.Errorf("NoFailBack %v, round %d: %d packets arrive at the peer", stays, round, len(peer.got))
				}
				if len(c.got) != 1 || !bytes.Equal(c.got[0], back) {
					t.Errorf("NoFailBack %v, round %d: %d packets arrive at the system", stays, round, len(c.got))
				}
			}
			c.got = nil
			w.send(peer, udp(v4(2), candidates[1], round))
			c.run(500 * time.Millisecond)
			if len(c.got) != 1 {
				t.Errorf("NoFailBack %v, round %d: %d packets to a group arrive", stays, round, len(c.got))
			}
			if got := c.memberships(c.Active()); !slices.Equal(got, c.groups) {
				t.Errorf("NoFailBack %v, round %d: the active member is in %v, want %v", stays, round, got, c.groups)
			}
			if got := c.memberships(1 - c.Active()); got != nil {
				t.Errorf("NoFailBack %v, round %d: the other member is in %v", stays, round, got)
			}
		}
		want := TeamCounters{FailOvers: 1, FailBacks: 1}
		if stays {
			want = TeamCounters{FailOvers: 2}
		}
		if got := c.Counters(); got.FailOvers != want.FailOvers || got.FailBacks != want.FailBacks || got.Announced < got.FailOvers {
			t.Errorf("NoFailBack %v: counters %+v, want %+v", stays, got, want)
		}
	}
}

// TestTeam_Announces: all nodes are told of a new active member at once, after 100 ms and after another 2 s, each time of all addresses.
func TestTeam_Announces(t *testing.T) {
	team, err := NewTeam(TeamConfig{Members: 2, Primary: -1})
	if err != nil {
		t.Fatal(err)
	}
	team.SetLink(0, 0, true)
	team.SetLink(0, 1, true)
	team.Orders()
	now := clock.Time(time.Minute)
	team.Advance(now)
	team.Orders()
	team.Advance(now)
	team.Orders()
	team.SetLink(now, 0, false)
	if got := team.Orders(); !slices.Equal(got, []Order{{0, Yields}, {1, TakesOver}}) {
		t.Fatalf("orders %v", got)
	}
	var gaps []time.Duration
	for last := now; team.Deadline() != clock.Never; last = now {
		now = team.Deadline()
		gaps = append(gaps, now.Sub(last))
		team.Advance(now)
		if got := team.Orders(); !slices.Equal(got, []Order{{1, Announces}}) {
			t.Fatalf("orders %v", got)
		}
	}
	if want := carrier.Rounds()[1:]; !slices.Equal(gaps, want) {
		t.Errorf("told again after %v, want %v", gaps, want)
	}
	if got, want := team.News(), (carrier.News{Member: 1, Status: carrier.Connected, Role: carrier.Active}); !slices.Contains(got, want) {
		t.Errorf("news %v, want %v among them", got, want)
	}
	if got := team.Status(0); got != (MemberStatus{carrier.Disconnected, carrier.Backup}) {
		t.Errorf("the member that failed is %v", got)
	}
}

// TestTeam_Config: what a team cannot be.
func TestTeam_Config(t *testing.T) {
	for _, c := range []struct {
		TeamConfig
		field string
	}{{TeamConfig{Members: 9, Primary: -1}, "Members"}, {TeamConfig{Members: 2, Primary: 2}, "Primary"}, {TeamConfig{Primary: 0}, "Primary"}} {
		var wrong *ConfigError
		if _, err := NewTeam(c.TeamConfig); !errors.As(err, &wrong) || wrong.Field != c.field {
			t.Errorf("%+v: %v, want an error about %s", c.TeamConfig, err, c.field)
		}
	}
}

// TestTeam_Behalf: an address that the system sends from on behalf of others goes with it.
func TestTeam_Behalf(t *testing.T) {
	w := newNetwork(t, 3, subnet.Config{}, defaults)
	c := newCrew(w, TeamConfig{Members: 2, Primary: -1})
	other, peer := v4(77), w.hosts[2]
	c.run(5 * time.Second)
	w.send(c.members[0], udp(other, v4(2), 1))
	c.run(100 * time.Millisecond)
	w.send(peer, udp(v4(2), other, 2))
	c.plug(0, false)
	c.run(100 * time.Millisecond)
	c.got = nil
	w.send(peer, udp(v4(2), other, 3))
	c.run(100 * time.Millisecond)
	if len(c.got) != 1 {
		t.Errorf("%d packets to an address behind the system arrive by the other member", len(c.got))
	}
}

// TestTeam_Follows: whatever ports fail and come back, and whatever the system listens to, a while later the active member, and nobody
// else, has the addresses and the groups of the system, and its peers send there.
func TestTeam_Follows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newNetwork(r, 4, subnet.Config{}, defaults)
		c := newCrew(w, TeamConfig{Members: 3, Primary: rapid.IntRange(-1, 2).Draw(r, "primary"), NoFailBack: rapid.Bool().Draw(r, "stays")})
		peer := w.hosts[3]
		c.run(3 * time.Second)
		for range rapid.IntRange(1, 6).Draw(r, "steps") {
			switch rapid.IntRange(0, 2).Draw(r, "what") {
			case 0:
				i := rapid.IntRange(0, 2).Draw(r, "member")
				c.plug(i, c.down[i])
			case 1:
				c.groups = nil
				for _, g := range candidates {
					if rapid.Bool().Draw(r, "listens") {
						c.groups = append(c.groups, g)
					}
				}
				c.change()
			case 2:
				if c.Active() >= 0 {
					w.send(peer, udp(v4(3), v4(100), 1))
				}
			}
			c.run(time.Duration(rapid.IntRange(0, 1500).Draw(r, "ms")) * time.Millisecond)
		}
		c.run(5 * time.Second)
		c.check(r, peer)
	})
}

// reports is a report of IGMP from the system's address.
func reports(records []eth.GroupRecord) []byte {
	b := igmp3(records...)
	eth.IPv4(b).Encode(0, len(b), 0, 1, eth.ProtocolIGMP, v4(100).As4(), [4]byte{224, 0, 0, 22})
	return b
}

// change tells the active member at once what the system listens to now.
func (c *crew) change() {
	if c.Active() < 0 {
		return
	}
	var records []eth.GroupRecord
	for _, g := range candidates {
		kind := eth.ChangeToInclude
		if slices.Contains(c.groups, g) {
			kind = eth.ChangeToExclude
		}
		records = append(records, eth.GroupRecord{Type: kind, Group: g})
	}
	c.w.send(c.members[c.Active()], reports(records))
}

func (c *crew) check(r *rapid.T, peer *host) {
	r.Helper()
	for i, m := range c.members {
		addrs, groups := m.Addresses(), c.memberships(i)
		if i != c.Active() {
			if len(addrs) != 0 || len(groups) != 0 {
				r.Errorf("member %d, which is not active, has %v and is in %v", i, addrs, groups)
			}
			continue
		}
		if want := []netip.Addr{v4(100), v6(100)}; !slices.Equal(addrs, want) {
			r.Errorf("the active member has %v, want %v", addrs, want)
		}
		for _, g := range c.groups {
			if !slices.Contains(groups, g) {
				r.Errorf("the active member is in %v, want %v among them", groups, c.groups)
			}
		}
	}
	if c.Active() < 0 {
		return
	}
	c.got = nil
	w := c.w
	w.send(peer, udp(v4(3), v4(100), 7))
	c.run(100 * time.Millisecond)
	n := peer.neighbours[v4(100)]
	if n == nil || n.link != (Address{QPN: c.members[c.Active()].qpn, GID: w.port(c.members[c.Active()]).GID}) || len(c.got) != 1 {
		r.Errorf("the peer knows %+v; %d packets arrived by member %d", n, len(c.got), c.Active())
	}
}

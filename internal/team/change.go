package team

import (
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/lacp"
)

// Join makes another link a member, and returns its place. Its link is down until SetLink says otherwise, and is then one that comes back:
// what others carry stays with them until it is proven. The error is an *Error.
func (t *Team) Join(m Member) (i int, err error) {
	c := t.cfg
	c.Members = append(slices.Clone(c.Members), m)
	if err := c.Check(); err != nil {
		return 0, err
	}
	t.cfg = c
	if i = slices.IndexFunc(t.members, func(m member) bool { return m.gone }); i < 0 {
		i = len(t.members)
		t.members = append(t.members, member{})
	}
	t.members[i] = member{Member: m}
	t.choice.Join(i, m.Primary)
	t.notes.Begin(i)
	if t.lacp != nil {
		t.lacp.SetMAC(i, m.MAC)
	}
	t.SetStations(t.stations)
	return i, nil
}

// Farewell returns a frame that tells the partner of a member of type 3AD that it is about to leave, so that nothing is sent there any
// more; nil: there is nobody to tell. The member's link is to send it before Leave.
func (t *Team) Farewell(i int) []byte {
	if t.lacp == nil || !t.choice.Usable(i) {
		return nil
	}
	return t.lacp.Farewell(i)
}

// Leave takes a member out, as if its link had failed: others carry what it has carried. Its place may be that of another that joins.
func (t *Team) Leave(now clock.Time, i int) {
	m := &t.members[i]
	t.cfg.Members = slices.DeleteFunc(slices.Clone(t.cfg.Members), func(o Member) bool { return o == m.Member })
	m.gone = true
	t.choice.Leave(i)
	t.turn(now, i)
	t.members[i] = member{gone: true}
	for k, p := range t.peers.known { // no other member was left to tell them
		if p.member == i {
			delete(t.peers.known, k)
		}
	}
	t.queue = slices.DeleteFunc(t.queue, func(q queued) bool { return q.member == i })
	t.SetStations(t.stations)
}

// Become gives the team another type. Its members, what is known of their links, and its address stay what they are; which of them carries
// what is decided anew, and everybody is told. With type 3AD those that carry go on until a partner is agreed with, or known to be silent;
// with another type members still take for a while what a partner of the one before sends them. fast is as of Config, for type 3AD alone.
// The error is an *Error.
func (t *Team) Become(now clock.Time, kind Type, fast bool) error {
	c := t.cfg
	c.Type, c.Fast, c.Passive, c.Choice = kind, fast, false, lacp.Stable
	if err := c.Check(); err != nil {
		return err
	}
	bundled := t.cfg.Type.aggregates()
	t.cfg = c
	t.held = held{until: clock.Never}
	if up, _ := t.Up(); up && kind == LACP {
		t.held.begin(now, t.members)
		if !bundled { // of those that balance the active one alone receives what is for the team's address
			t.held.members = [MostMembers]bool{}
			t.held.members[t.active] = true
		}
	}
	t.active, t.peers, t.queue = -1, newPeers(), nil
	t.spread.clear()
	t.moving.clear()
	if err := t.speak(); err != nil {
		return err
	}
	for _, first := range []bool{true, false} { // if no partner speaks, LACP takes the first that is up
		for i := range t.members {
			if m := &t.members[i]; t.lacp != nil && !m.gone && t.held.members[i] == first {
				t.lacp.SetUp(now, i, t.choice.Usable(i), m.speed)
			}
		}
	}
	for i := range t.members {
		t.members[i].takes, t.members[i].sends = false, false
	}
	t.settle(now)
	if bundled && !kind.aggregates() {
		t.choice.Linger(now)
	}
	t.announce.Begin(now) // peers of one that balances know other addresses
	t.tellAll(now)
	return nil
}

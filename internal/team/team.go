package team

import (
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/lacp"
	"github.com/softvpi/softvpi/internal/team/carrier"
	"github.com/softvpi/softvpi/wire/eth"
)

// Team is several links that are one. Its members are known by their places: those in its configuration, and then those that Join gives.
type Team struct {
	cfg     Config // with the members that there are
	mac     eth.MAC
	members []member
	choice  *carrier.Chooser
	active  int // its choice; -1: none, or all alike
	lacp    *lacp.System
	spread  spread
	moving  moving
	held    held
	peers   peers

	stations []Station
	macs     map[eth.MAC]bool // of stations and members: who sends from one of them is the team itself

	queue    []queued
	announce carrier.Announcements
	counters Counters
	notes    carrier.Notes
}

// member is one of a team's links.
type member struct {
	Member
	own          eth.MAC // that it sends from, and is told to peers, while it is not active
	gone         bool    // it has left, and its place is free
	speed        uint64
	takes, sends bool
}

// queued is a frame that waits to be sent by a member.
type queued struct {
	member int
	frame  []byte
}

// mostQueued is how many frames may wait for Frame; of more the last are not sent, as if the network had lost them.
const mostQueued = 1024

// New returns a team whose links are all down. The error is an *Error.
func New(cfg Config) (*Team, error) {
	cfg.Members = slices.Clone(cfg.Members)
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	t := &Team{cfg: cfg, mac: cfg.MAC(), active: -1, announce: carrier.NoAnnouncements(), peers: newPeers(),
		held: held{until: clock.Never}}
	primary := slices.IndexFunc(cfg.Members, func(m Member) bool { return m.Primary })
	t.notes = carrier.NotesOf(len(cfg.Members))
	t.choice = carrier.New(len(cfg.Members), primary, cfg.NoFailBack)
	for _, m := range cfg.Members {
		t.members = append(t.members, member{Member: m})
	}
	t.spread.clear()
	t.moving.clear()
	t.SetStations(nil)
	if len(cfg.Members) == 0 {
		return t, nil
	}
	return t, t.speak()
}

// speak begins with LACP, if the type is 3AD, and otherwise ends it.
func (t *Team) speak() (err error) {
	if t.lacp = nil; t.cfg.Type != LACP {
		return nil
	}
	g := lacp.Group{Key: key, Passive: t.cfg.Passive, Fast: t.cfg.Fast, Choice: t.cfg.Choice}
	for i := range MostMembers { // those of members that are still to join are down
		g.Ports = append(g.Ports, lacp.Port{Number: uint16(i + 1)})
	}
	for i := range t.members {
		if m := &t.members[i]; !m.gone {
			g.Ports[i].MAC = m.Member.MAC
		}
	}
	t.lacp, err = lacp.New(lacp.Config{System: t.mac, Groups: []lacp.Group{g}})
	return err
}

// MAC returns the team's address, which stays what it is, whoever joins and leaves.
func (t *Team) MAC() eth.MAC { return t.mac }

// Members returns how many places of members there are.
func (t *Team) Members() int { return len(t.members) }

// SetStations says whom the team serves from now on.
func (t *Team) SetStations(list []Station) {
	t.stations = list
	t.macs = make(map[eth.MAC]bool, len(list)+2*len(t.members))
	for _, s := range list {
		t.macs[s.MAC] = true
	}
	station := t.macs
	for i := range t.members {
		m := &t.members[i]
		m.own = m.Member.MAC
		if station[m.own] {
			m.own = other(m.own, func(a eth.MAC) bool { return t.macs[a] || t.isMember(a) })
		}
	}
	for i := range t.members {
		if m := &t.members[i]; !m.gone {
			t.macs[m.own] = true
		}
	}
}

func (t *Team) isMember(a eth.MAC) bool {
	return slices.ContainsFunc(t.cfg.Members, func(m Member) bool { return m.MAC == a })
}

// Own returns the address that a member sends from while it is not active, and has to be let receive, if the type Balances.
func (t *Team) Own(i int) eth.MAC { return t.members[i].own }

// SetLink says whether the link of a member is up, and what it carries, in bits per second; 0: nobody knows.
func (t *Team) SetLink(now clock.Time, i int, up bool, speed uint64) {
	m := &t.members[i]
	if t.choice.Knows(i, up) && m.speed == speed {
		return
	}
	again := m.speed != speed
	t.choice.SetLink(now, i, up)
	m.speed = speed
	if t.turn(now, i); again {
		t.respread(now)
	}
}

// SetDisabled takes a member out of use, or puts it back.
func (t *Team) SetDisabled(now clock.Time, i int, disabled bool) {
	farewell := t.Farewell(i)
	if !t.choice.SetDisabled(i, disabled) {
		return
	}
	if t.turn(now, i); farewell != nil {
		t.put(i, farewell)
	}
}

func (t *Team) turn(now clock.Time, i int) {
	if t.lacp != nil {
		t.lacp.SetUp(now, i, t.choice.Usable(i), t.members[i].speed)
	}
	t.settle(now)
}

// Advance does what is due.
func (t *Team) Advance(now clock.Time) {
	if t.lacp != nil {
		t.lacp.Advance(now)
		t.settle(now)
		t.advanceMoves(now)
	}
	if t.choice.Deadline() <= now || t.held.until <= now {
		t.settle(now)
	}
	if t.announce.Deadline() <= now {
		t.tellAll(now)
	}
	t.retell(now)
}

// Deadline returns when Advance, or Frame, is wanted next.
func (t *Team) Deadline() clock.Time {
	if len(t.queue) > 0 {
		return 0
	}
	next := clock.Min(t.choice.Deadline(), clock.Min(t.announce.Deadline(), t.peers.due))
	if t.lacp != nil {
		next = clock.Min(next, clock.Min(t.lacp.Deadline(), clock.Min(t.moving.due, t.held.until)))
	}
	return next
}

// Frame returns a whole frame that is to be sent now, and by which member; nil: there is none. The frame is the caller's.
func (t *Team) Frame(now clock.Time) (i int, frame []byte) {
	if len(t.queue) > 0 {
		q := t.queue[0]
		if t.queue = t.queue[1:]; len(t.queue) == 0 {
			t.queue = nil
		}
		return q.member, q.frame
	}
	if t.lacp != nil {
		return t.lacp.Transmit(now)
	}
	return 0, nil
}

// put queues a frame.
func (t *Team) put(i int, frame []byte) {
	if len(t.queue) == mostQueued {
		t.counters.Unsent++
		return
	}
	t.queue = append(t.queue, queued{i, frame})
}

// settle decides which members carry what, after something has changed.
func (t *Team) settle(now clock.Time) {
	move := carrier.Stays
	if t.cfg.Type.aggregates() {
		t.choice.Prove(now)
		t.hold(now)
	} else {
		_, move = t.choice.Choose(now)
		t.active = t.choice.Active()
	}
	changed, all := t.assign()
	if t.held.alone() { // which no switch knows
		move = all
	}
	changed = changed || move != carrier.Stays
	if !changed {
		t.note() // a member that carries nothing has come or gone
		return
	}
	t.respread(now)
	t.regroup(now)
	if move != carrier.Stays {
		t.moved(now, move)
	}
	t.note()
}

// assign has members carry what they are to, and returns whether that is something else, and the move if others carry all of it now: what
// is known elsewhere of the stations leads to members that do not carry any more.
func (t *Team) assign() (changed bool, move carrier.Move) {
	var goes, stays, comes bool
	for i := range t.members {
		m := &t.members[i]
		takes, sends := t.carries(i)
		goes, stays, comes = goes || m.sends && !sends, stays || m.sends && sends, comes || !m.sends && sends
		changed = changed || m.takes != takes || m.sends != sends
		m.takes, m.sends = takes, sends
	}
	switch {
	case stays || !goes && !comes:
		return changed, carrier.Stays
	case !comes:
		return changed, carrier.NoneIsLeft
	case !goes:
		return changed, carrier.Begins
	}
	return changed, carrier.FailsOver
}

// carries returns whether a member takes frames, and whether it sends some.
func (t *Team) carries(i int) (takes, sends bool) {
	switch {
	case !t.choice.Usable(i):
		return false, false
	case t.lacp != nil && t.held.members[i]:
		return true, true
	case t.lacp != nil:
		return t.lacp.Carries(i)
	case t.cfg.Type == SLA || t.cfg.Type.Balances():
		return true, t.choice.Ready(i)
	}
	return i == t.active, i == t.active
}

// moved counts that another member is active, and lets everybody know where the stations are now.
func (t *Team) moved(now clock.Time, move carrier.Move) {
	switch move {
	case carrier.NoneIsLeft:
		t.announce.End()
		return
	case carrier.FailsBack:
		t.counters.FailBacks++
	case carrier.FailsOver:
		t.counters.FailOvers++
	}
	t.announce.Begin(now)
	t.tellAll(now)
}

// late says that a frame to a member that is not active any more is one that its sender would send elsewhere by now. What is for groups
// it leaves alone: that arrives at all members.
func (t *Team) late(now clock.Time, i int, b []byte) bool {
	return now < t.choice.Until(i) && b[0]&1 == 0
}

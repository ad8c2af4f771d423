package team

import (
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/lacp"
	"github.com/softvpi/softvpi/wire/eth"
)

// Team is several links that are one. Its members are known by their places: those in its configuration, and then those that Join gives.
type Team struct {
	cfg     Config // with the members that there are
	mac     eth.MAC
	members []member
	active  int // -1: none, or all alike
	lacp    *lacp.System
	spread  spread
	moving  moving
	peers   peers

	stations []Station
	macs     map[eth.MAC]bool // of stations and members: who sends from one of them is the team itself

	queue     []queued
	announced int // how often the active member has been; all announcements: there is nothing to do
	announce  clock.Time
	proving   clock.Time // when the next link that has come back is proven
	anyProven bool       // a member that can be used is
	beginning bool       // a member's link is heard of for the first time
	counters  Counters
	news      []News
}

// member is one of a team's links.
type member struct {
	Member
	own          eth.MAC // that it sends from, and is told to peers, while it is not active
	up, disabled bool
	gone         bool // it has left, and its place is free
	known        bool // whether its link is up has been said
	proves       bool // its link came back a moment ago, and is proven at:
	proven       clock.Time
	until        clock.Time // it takes frames so long though another is active
	speed        uint64
	takes, sends bool
	noted        News
}

// usable says that a member's link is up and nobody has disabled it.
func (m *member) usable() bool { return m.up && !m.disabled }

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
	t := &Team{cfg: cfg, mac: cfg.MAC(), active: -1, announced: len(announcements), announce: clock.Never, proving: clock.Never,
		peers: newPeers()}
	for _, m := range cfg.Members {
		t.members = append(t.members, member{Member: m})
	}
	t.spread.clear()
	t.moving.clear()
	t.SetStations(nil)
	if cfg.Type != LACP || len(cfg.Members) == 0 {
		return t, nil
	}
	g := lacp.Group{Key: key, Passive: cfg.Passive, Fast: cfg.Fast, Choice: cfg.Choice}
	for i := range MostMembers { // those of members that are still to join are down
		g.Ports = append(g.Ports, lacp.Port{Number: uint16(i + 1)})
	}
	for i, m := range cfg.Members {
		g.Ports[i].MAC = m.MAC
	}
	var err error
	t.lacp, err = lacp.New(lacp.Config{System: t.mac, Groups: []lacp.Group{g}})
	return t, err
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
	if m.known && m.up == up && m.speed == speed {
		return
	}
	again := m.speed != speed
	t.beginning = !m.known
	defer func() { t.beginning = false }()
	m.came(now, up)
	m.speed = speed
	if t.turn(now, i); again {
		t.respread(now)
	}
}

// SetDisabled takes a member out of use, or puts it back.
func (t *Team) SetDisabled(now clock.Time, i int, disabled bool) {
	if m := &t.members[i]; m.disabled != disabled {
		m.disabled = disabled
		t.turn(now, i)
	}
}

func (t *Team) turn(now clock.Time, i int) {
	if m := &t.members[i]; t.lacp != nil {
		t.lacp.SetUp(now, i, m.usable(), m.speed)
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
	if t.proving <= now {
		t.settle(now)
	}
	if t.announce <= now {
		t.tellAll(now)
	}
	t.retell(now)
}

// Deadline returns when Advance, or Frame, is wanted next.
func (t *Team) Deadline() clock.Time {
	if len(t.queue) > 0 {
		return 0
	}
	next := clock.Min(t.proving, clock.Min(t.announce, t.peers.due))
	if t.lacp != nil {
		next = clock.Min(next, clock.Min(t.lacp.Deadline(), t.moving.due))
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
	before := t.active
	t.prove(now)
	if !t.cfg.Type.aggregates() {
		t.active = t.choose()
	}
	changed := t.active != before
	for i := range t.members {
		m := &t.members[i]
		takes, sends := t.carries(i)
		if m.takes != takes || m.sends != sends {
			m.takes, m.sends, changed = takes, sends, true
		}
	}
	if !changed {
		t.note() // a member that carries nothing has come or gone
		return
	}
	t.respread(now)
	t.regroup(now)
	if t.active != before {
		t.moved(now, before)
	}
	t.note()
}

// choose returns which member is active: the primary one if it can be and the team fails back, once its link is proven, or nobody else
// is; otherwise that which is, as long as it can be, and then the first that can.
func (t *Team) choose() int {
	primary := slices.IndexFunc(t.members, func(m member) bool { return m.Primary })
	current := t.active >= 0 && t.members[t.active].usable()
	switch {
	case primary >= 0 && t.members[primary].usable() && (!current || !t.cfg.NoFailBack && !t.members[primary].proves):
		return primary
	case current:
		return t.active
	}
	for i := range t.members {
		if t.ready(i) {
			return i
		}
	}
	return -1
}

// carries returns whether a member takes frames, and whether it sends some.
func (t *Team) carries(i int) (takes, sends bool) {
	m := &t.members[i]
	switch {
	case !m.usable():
		return false, false
	case t.lacp != nil:
		return t.lacp.Carries(i)
	case t.cfg.Type == SLA || t.cfg.Type.Balances():
		return true, t.ready(i)
	}
	return i == t.active, i == t.active
}

// moved counts that another member is active, and lets everybody know where the stations are now.
func (t *Team) moved(now clock.Time, before int) {
	switch {
	case t.active < 0:
		t.announce = clock.Never
		return
	case t.beginning: // nobody was active but for want of news of the others
	case before >= 0 && t.members[before].usable():
		t.counters.FailBacks++
	case before >= 0:
		t.counters.FailOvers++
	}
	t.linger(now, before)
	t.announced = 0
	t.tellAll(now)
}

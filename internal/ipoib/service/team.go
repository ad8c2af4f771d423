package service

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/team/carrier"
)

// TeamConfig configures a team.
type TeamConfig struct {
	// Names are what the members are called that the team has at first; of them Primary is active whenever it can be, if the team fails
	// back; empty: none is.
	Names      []string
	Primary    string
	NoFailBack bool
	// Changed, if any, is told what has changed of a member.
	Changed func(member string, n carrier.News)
	// Carries, if any, is told which member carries these addresses now, and which did before; empty: none. It must not call the Team.
	Carries func(now, before string, addrs []netip.Prefix)
}

// Team is interfaces of different ports, its members, that are one network interface of the system: one of them carries what the system
// sends and is sent, and another one when it fails (WinOF 5.50, 4.2.8.2). Members come and go.
type Team struct {
	cfg    TeamConfig
	system System // may be nil
	origin time.Time
	wake   chan struct{}
	done   chan struct{}
	ended  chan struct{}

	active  atomic.Pointer[Interface]
	lost    atomic.Uint64
	stoodBy atomic.Uint64
	taken   *Interface // of the goroutine of take: who has taken packets since it was idle

	// of run
	carrying *Interface // has taken over
	held     ipoib.Held
	mtu      int    // of system
	on       bool   // system has a carrier
	carrier  string // that Carries was told
	told     []netip.Prefix

	mu       sync.Mutex // guards what follows; the ports of members may be locked before it, and never after
	engine   *ipoib.Team
	prefixes []netip.Prefix
	routes   []ipoib.Route
	changed  bool // prefixes or routes have, for run
	members  []*Member
	seats    [ipoib.MostMembers]*Member // by the places in the engine
	awaited  []chan struct{}            // who waits for run to have done what there was
}

// Member is a place in a team, with a name. It is the System of the interface that has it.
type Member struct {
	team  *Team
	name  string
	place int
	// takes is until when what is sent to the member alone is handed up; clock.Never: all that is sent to it.
	takes atomic.Int64

	// with the team's mu
	joined *Interface
	up     bool
	mtu    int
}

// NewTeam runs a team, whose members have no interfaces yet, until Close. The error is a *ipoib.ConfigError.
func NewTeam(cfg TeamConfig, s System) (*Team, error) {
	e, err := ipoib.NewTeam(ipoib.TeamConfig{Members: len(cfg.Names), Primary: slices.Index(cfg.Names, cfg.Primary),
		NoFailBack: cfg.NoFailBack})
	if err != nil {
		return nil, err
	}
	t := &Team{cfg: cfg, system: s, origin: time.Now(), engine: e, wake: make(chan struct{}, 1), done: make(chan struct{}),
		ended: make(chan struct{})}
	for i, name := range cfg.Names {
		t.seat(name, i)
	}
	if s != nil {
		_ = s.SetCarrier(false)
	}
	go t.run()
	return t, nil
}

// seat puts a member at a place.
func (t *Team) seat(name string, place int) *Member {
	m := &Member{team: t, name: name, place: place}
	t.members, t.seats[place] = append(t.members, m), m
	return m
}

// Member returns a member by its number, in the order in which they came.
func (t *Team) Member(i int) *Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.members[i]
}

// Add makes another one a member, which has no interface yet; others go on. The error is a *ipoib.ConfigError.
func (t *Team) Add(name string, primary, disabled bool) (*Member, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	place, err := t.engine.Join(primary)
	if err != nil {
		return nil, err
	}
	t.engine.SetDisabled(t.now(), place, disabled)
	return t.seat(name, place), nil
}

// Remove takes a member out, as if it had failed; others go on. When it returns its interface carries nothing any more. Add, Remove and
// Close are not called together.
func (t *Team) Remove(m *Member) {
	over := make(chan struct{})
	t.mu.Lock()
	t.engine.Leave(t.now(), m.place)
	t.members = slices.DeleteFunc(t.members, func(o *Member) bool { return o == m })
	t.awaited = append(t.awaited, over)
	t.mu.Unlock()
	t.rouse()
	<-over
	t.mu.Lock()
	t.seats[m.place] = nil
	t.mu.Unlock()
	m.takes.Store(0)
}

func (t *Team) now() clock.Time { return clock.Time(time.Since(t.origin)) }

func (t *Team) rouse() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Join gives the member an interface, which was added with the member as its System.
func (m *Member) Join(i *Interface) {
	m.team.mu.Lock()
	m.joined = i
	m.team.mu.Unlock()
	m.team.rouse()
}

// Leave takes the interface from the member: it is closed, or about to be.
func (m *Member) Leave() {
	m.team.mu.Lock()
	m.joined, m.up = nil, false
	m.team.mu.Unlock()
	m.team.rouse()
}

// SetDisabled takes the member out of use, or puts it back.
func (m *Member) SetDisabled(disabled bool) {
	t := m.team
	t.mu.Lock()
	t.engine.SetDisabled(t.now(), m.place, disabled)
	t.mu.Unlock()
	t.rouse()
}

// SetCarrier implements System.
func (m *Member) SetCarrier(on bool) error {
	m.team.mu.Lock()
	m.up = on
	m.team.mu.Unlock()
	m.team.rouse()
	return nil
}

// SetMTU implements System.
func (m *Member) SetMTU(n int) error {
	m.team.mu.Lock()
	m.mtu = n
	m.team.mu.Unlock()
	m.team.rouse()
	return nil
}

// Write implements System.
func (m *Member) Write(h offload.Header, pieces [][]byte) error {
	t := m.team
	until := clock.Time(m.takes.Load())
	if until != clock.Never && (t.now() >= until || len(pieces) == 0 || !ipoib.Alone(pieces[0])) {
		t.stoodBy.Add(1)
		return nil
	}
	if t.system == nil {
		return nil
	}
	return t.system.Write(h, pieces)
}

// take accepts a packet from the system. A packet that no member can send is lost.
func (t *Team) take(h offload.Header, packet []byte) {
	i := t.active.Load()
	if i == nil {
		t.lost.Add(1)
		return
	}
	if t.taken != nil && t.taken != i {
		t.taken.idle()
	}
	t.taken = i
	i.take(h, packet)
}

// idle starts sending what take has queued.
func (t *Team) idle() {
	if t.taken != nil {
		t.taken.idle()
		t.taken = nil
	}
}

// Set sets the team's addresses and its routes to other links.
func (t *Team) Set(prefixes []netip.Prefix, routes []ipoib.Route) {
	t.mu.Lock()
	t.prefixes, t.routes, t.changed = slices.Clone(prefixes), slices.Clone(routes), true
	t.mu.Unlock()
	t.rouse()
}

// run carries out what the engine orders. It alone calls members' interfaces, without the team's lock.
func (t *Team) run() {
	defer close(t.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(min(t.turn(), time.Hour))
		select {
		case <-t.done:
			return
		case <-t.wake:
		case <-timer.C:
		}
	}
}

// turn does what there is to be done, and returns when more is due.
func (t *Team) turn() time.Duration {
	t.mu.Lock()
	now := t.now()
	for _, m := range t.members {
		t.engine.SetLink(now, m.place, m.up && m.joined != nil)
	}
	t.engine.Advance(now)
	orders, news, due := t.engine.Orders(), t.engine.News(), t.engine.Deadline()
	prefixes, routes, changed := t.prefixes, t.routes, t.changed
	t.changed = false
	seats, interfaces, until := t.seats, t.interfaces(), t.lingers()
	mtu, active := 0, ""
	if i := t.engine.Active(); i >= 0 {
		mtu, active = seats[i].mtu, seats[i].name
	}
	awaited := t.awaited
	t.awaited = nil
	t.mu.Unlock()
	for _, o := range orders {
		t.carryOut(o, seats[o.Member], interfaces[o.Member], until[o.Member], prefixes, routes)
	}
	if changed && t.carrying != nil {
		t.carrying.Set(prefixes, routes)
	}
	t.tellSystem(active != "", mtu)
	t.tellOwner(active, prefixes)
	for _, n := range news {
		if t.cfg.Changed != nil && seats[n.Member] != nil {
			t.cfg.Changed(seats[n.Member].name, n)
		}
	}
	for _, over := range awaited {
		close(over)
	}
	return time.Duration(due - now)
}

// interfaces are those of the members.
func (t *Team) interfaces() (list [ipoib.MostMembers]*Interface) {
	for _, m := range t.members {
		list[m.place] = m.joined
	}
	return list
}

// lingers is until when members that are not active take what is sent to them alone.
func (t *Team) lingers() (list [ipoib.MostMembers]clock.Time) {
	for _, m := range t.members {
		list[m.place] = t.engine.Until(m.place)
	}
	return list
}

func (t *Team) carryOut(o ipoib.Order, m *Member, i *Interface, until clock.Time, prefixes []netip.Prefix, routes []ipoib.Route) {
	switch o.Kind {
	case ipoib.Yields:
		t.active.Store(nil)
		m.takes.Store(int64(until))
		if t.carrying != nil {
			t.held = t.carrying.yield()
		}
		t.carrying = nil
	case ipoib.TakesOver:
		if i == nil {
			return // it has left since
		}
		m.takes.Store(int64(clock.Never)) // before it asks the system what that listens to
		i.takeOver(prefixes, routes, t.held)
		t.carrying = i
		t.active.Store(i)
	case ipoib.Announces:
		if t.carrying != nil {
			t.carrying.announce()
		}
	}
}

// tellSystem sets the carrier and the MTU of the system's interface. A system that refuses is as it was.
func (t *Team) tellSystem(on bool, mtu int) {
	if t.system == nil {
		return
	}
	if on && mtu != t.mtu {
		t.mtu = mtu
		_ = t.system.SetMTU(mtu)
	}
	if on != t.on {
		t.on = on
		_ = t.system.SetCarrier(on)
	}
}

func (t *Team) tellOwner(active string, prefixes []netip.Prefix) {
	if t.cfg.Carries != nil && (active != t.carrier || !slices.Equal(prefixes, t.told)) {
		t.cfg.Carries(active, t.carrier, prefixes)
		t.carrier, t.told = active, prefixes
	}
}

// TeamStatus is how a team is.
type TeamStatus struct {
	Members  []TeamMember
	Active   int // its number among them; -1: none
	Counters ipoib.TeamCounters
	Lost     uint64 // packets of the system that no member could send
	StoodBy  uint64 // packets that arrived at a member that did not take them
}

// TeamMember is how a member is.
type TeamMember struct {
	Name string
	ipoib.MemberStatus
	Interface *Interface // nil: it has none
}

// Status returns how the team is.
func (t *Team) Status() TeamStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := TeamStatus{Active: -1, Counters: t.engine.Counters(), Lost: t.lost.Load(), StoodBy: t.stoodBy.Load()}
	for i, m := range t.members {
		if m.place == t.engine.Active() {
			s.Active = i
		}
		s.Members = append(s.Members, TeamMember{m.name, t.engine.Status(m.place), m.joined})
	}
	return s
}

// Close ends the team. Its members' interfaces are closed before, or have left.
func (t *Team) Close() {
	close(t.done)
	<-t.ended
	t.active.Store(nil)
	for _, m := range t.members {
		m.takes.Store(0)
	}
	if t.carrying != nil {
		t.carrying.yield()
	}
	t.tellSystem(false, 0)
}

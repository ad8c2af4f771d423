package team

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/internal/team"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lacp"
)

// Config describes a link.
type Config struct {
	// Team says how the members are used; its Members are those of Links, in their order, one at least.
	Team team.Config
	// Links are the members' links: of whole frames, with stations, and nobody else's. Open takes them only if it returns no error.
	Links []link.Link
	// Names are what Changed and Status call the members, in their order; nil: nothing.
	Names []string
	// Notify is called when Errors is due. It must not call the link.
	Notify func()
	// Changed is told what has changed of a member; nil: nobody is. It must not call the link, nor wait.
	Changed func(member string, n team.News)
	// Now returns the time; nil: a monotonic clock.
	Now func() clock.Time
}

// Link is a team as a link.
type Link struct {
	*station.Set
	now     func() clock.Time
	notify  func()
	changed func(string, team.News)
	kind    team.Type
	hash    team.Hash
	engine  *team.Team
	members []member
	at      [team.MostMembers]int // the members' indices by their places in the engine; none: nobody is there
	caps    link.Capabilities
	next    int         // the member that is asked first by the next Receive
	timer   *time.Timer // of the stations
	alarm   *time.Timer // of the engine
	due     clock.Time  // for which alarm is set

	// state guards all that the owner has, for Status, which anybody may ask for.
	state  sync.Mutex
	mu     sync.Mutex // guards waits
	waits  [][]byte   // frames of the stations' that are to be sent by whoever owns the link
	taken  [][]byte   // those that are sent just now
	own    [1]frame.Out
	head   [team.Headers]byte
	whole  []byte
	origin []eth.MAC // of frames that are about to be sent

	stations []link.Station
	ears     []eth.MAC
	groups   map[eth.MAC]bool // that are heard
	pauses   func(*member)    // tells a member which pauses it obeys and sends; nil: nothing was said
}

// member is one of the links.
type member struct {
	link.Link
	name     string
	place    int // in the engine
	stations link.Stations
	hears    []eth.MAC // to which it listens
	traffic  Traffic
}

// Traffic is what a member has carried since the link was opened: frames whole, without their check sequence. Those that arrived at a
// member that does not take them count too, and those of the team's own.
type Traffic struct {
	SentFrames, SentBytes         uint64
	ReceivedFrames, ReceivedBytes uint64
}

// MemberStatus is how a member is, and what it has carried.
type MemberStatus struct {
	Name string
	team.MemberStatus
	Traffic
}

// name begins the link's errors.
const name = "team"

// mostWaiting is how many frames of the stations may wait for the link's owner; more are lost.
const mostWaiting = 256

var (
	_ link.Link     = (*Link)(nil)
	_ link.Stations = (*Link)(nil)
)

// Open makes a link of links. The error is a *team.Error, a *station.FieldError, or a member's.
func Open(cfg Config) (*Link, error) {
	if len(cfg.Links) == 0 || len(cfg.Links) != len(cfg.Team.Members) {
		return nil, bad("Links", len(cfg.Links), fmt.Sprintf("one for each member, of which there are %d and want 1 or more", len(cfg.Team.Members)))
	}
	engine, err := team.New(cfg.Team)
	if err != nil {
		return nil, err
	}
	l := &Link{now: cfg.Now, notify: cfg.Notify, kind: cfg.Team.Type, hash: cfg.Team.Hash, engine: engine, due: clock.Never}
	if began := time.Now(); l.now == nil {
		l.now = func() clock.Time { return clock.Time(time.Since(began)) }
	}
	if l.notify == nil {
		l.notify = func() {}
	}
	if l.changed = cfg.Changed; l.changed == nil {
		l.changed = func(string, team.News) {}
	}
	for i, m := range cfg.Links {
		o, err := newMember(fmt.Sprintf("Links[%d]", i), m)
		if err != nil {
			return nil, err
		}
		if o.place = i; cfg.Names != nil {
			o.name = cfg.Names[i]
		}
		l.members = append(l.members, o)
	}
	l.locate()
	l.timer, l.alarm = stopped(l.notify), stopped(l.notify)
	l.caps = link.Capabilities{MaxSegments: 1, Raw: true, MTU: l.mtu(), Stations: l, Multicaster: l, Resolver: l, Carrier: l}
	if l.allPause() {
		l.caps.Pauses = pausers{l}
	}
	l.Set = station.New(station.Config{Name: name, Wire: l.wire, MTU: l.caps.MTU, Arm: l.arm, Now: l.now})
	for i := range l.members {
		if err := l.hearPartner(&l.members[i]); err != nil {
			return nil, err
		}
	}
	for i := range l.members {
		l.look(l.now(), i)
	}
	l.turn(l.now())
	return l, nil
}

func bad(field string, value any, want string) error {
	return &station.FieldError{Link: name, Field: field, Value: value, Want: want}
}

// stopped returns a timer that calls a function when it is set.
func stopped(call func()) *time.Timer {
	t := time.AfterFunc(time.Hour, call)
	t.Stop()
	return t
}

// newMember returns a member of a link of whole frames.
func newMember(field string, l link.Link) (member, error) {
	c := l.Capabilities()
	if !c.Raw || c.InfiniBand || c.Stations == nil {
		return member{}, bad(field, fmt.Sprintf("%T", l), "a link of whole Ethernet frames with stations")
	}
	return member{Link: l, stations: c.Stations}, nil
}

// hearPartner lets a member hear LACP, if it is spoken.
func (l *Link) hearPartner(m *member) error {
	if l.kind != team.LACP {
		return nil
	}
	return m.stations.Hear(lacp.SlowProtocols, true)
}

// mtu is the largest packet that all members carry.
func (l *Link) mtu() int {
	n := l.caps.MTU // without members it stays what it was
	for i := range l.members {
		if mtu := l.members[i].Capabilities().MTU; i == 0 || mtu < n {
			n = mtu
		}
	}
	return n
}

// MAC returns the team's address, for the station of who has none of his own.
func (l *Link) MAC() eth.MAC { return l.engine.MAC() }

// Capabilities implements link.Link.
func (l *Link) Capabilities() link.Capabilities { return l.caps }

// WireState implements link.Carrier: the team is up while a member sends, with the speed of all that do.
func (l *Link) WireState() (s link.State) {
	l.state.Lock()
	defer l.state.Unlock()
	s.Up, s.Speed = l.engine.Up()
	return s
}

// pausers are the members that obey and send pauses as they are told.
type pausers struct{ l *Link }

// SetPauses implements link.Pauses.
func (p pausers) SetPauses(obeys, asks pause.Scope, rate uint64) {
	p.l.pauses = func(m *member) {
		if c := m.Capabilities().Pauses; c != nil {
			c.SetPauses(obeys, asks, rate)
		}
	}
	for i := range p.l.members {
		p.l.pauses(&p.l.members[i])
	}
}

// allPause reports whether all members can be told.
func (l *Link) allPause() bool {
	return !slices.ContainsFunc(l.members, func(m member) bool { return m.Capabilities().Pauses == nil })
}

// Descriptors implements link.Link: those of all members. Timers, and members without, call Notify.
func (l *Link) Descriptors() (all []int) {
	for i := range l.members {
		all = append(all, l.members[i].Descriptors()...)
	}
	return all
}

// Stats implements link.Link. Packets are those of the team; what members have lost before they handed it up, and waited for, is theirs.
func (l *Link) Stats() link.Stats {
	s := l.Set.Stats()
	for i := range l.members {
		m := l.members[i].Stats()
		s.SendErrors += m.SendErrors
		s.SendBlocked += m.SendBlocked
		s.ReceiveDrops += m.ReceiveDrops
		s.ReceiveTruncated += m.ReceiveTruncated
		s.ReceiveUndersize += m.ReceiveUndersize
		s.ErrorsLost += m.ErrorsLost
		s.ReceiveBuffer += m.ReceiveBuffer
	}
	return s
}

// Status is how a team is.
type Status struct {
	Type     team.Type
	Hash     team.Hash
	MAC      eth.MAC
	Members  []MemberStatus
	Counters team.Counters
}

// Status returns how the team is. Any goroutine may call it.
func (l *Link) Status() Status {
	l.state.Lock()
	defer l.state.Unlock()
	s := Status{Type: l.kind, Hash: l.hash, MAC: l.engine.MAC(), Counters: l.engine.Counters()}
	for i := range l.members {
		m := &l.members[i]
		s.Members = append(s.Members, MemberStatus{m.name, l.engine.Status(m.place), m.traffic})
	}
	return s
}

// SetDisabled takes a member out of use, or puts it back. Any goroutine may call it.
func (l *Link) SetDisabled(i int, disabled bool) {
	l.state.Lock()
	l.engine.SetDisabled(l.now(), l.members[i].place, disabled)
	l.state.Unlock()
	l.notify() // who owns the link sends what the engine has to say
}

// Close implements link.Link. It closes the members.
func (l *Link) Close() (err error) {
	if !l.End() {
		return nil
	}
	l.timer.Stop()
	l.alarm.Stop()
	for i := range l.members {
		err = errors.Join(err, l.members[i].Close())
	}
	return err
}

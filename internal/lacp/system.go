package lacp

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lacp"
)

// System is a system with ports. Its ports are known by their places: those of the first group come first.
type System struct {
	cfg    Config
	groups []group
	ports  []port
	// answers are responses to markers that are to be sent.
	answers []answer
}

// group is ports with one aggregator.
type group struct {
	cfg    *Group
	ports  []*port
	chosen *partnership // whose links the aggregator has; nil: no link is up
}

// port is one of them, with the variables of 6.4.7 and 6.4.8.
type port struct {
	group          *group
	mac            eth.MAC
	rate           uint64
	up             bool // port_enabled
	actor, partner lacp.Participant
	receive        receiveState
	mux            muxState
	selected       selection
	ntt            bool
	whileTimer     clock.Time // current_while_timer
	waitTimer      clock.Time // wait_while_timer
	periodic       clock.Time // periodic_timer
	fast           bool       // it is FAST_PERIODIC
	last           [mostUnits]clock.Time
	sent           uint64
	// marked and answered are the numbers of its newest marker, and of the one that was answered; marks: it is still to be sent.
	marked, answered uint32
	marks            bool

	heard, markers, errors, timeouts uint64
}

// New returns a system whose links are all down. The error is an *Error.
func New(cfg Config) (*System, error) {
	if cfg.Priority == 0 {
		cfg.Priority = DefaultPriority
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &System{cfg: cfg, groups: make([]group, len(cfg.Groups))}
	n := 0
	for i := range cfg.Groups {
		n += len(cfg.Groups[i].Ports)
	}
	s.ports = make([]port, 0, n)
	for i := range s.groups {
		g := &s.groups[i]
		g.cfg = &cfg.Groups[i]
		for _, c := range g.cfg.Ports {
			s.ports = append(s.ports, newPort(&cfg, g, c))
			g.ports = append(g.ports, &s.ports[len(s.ports)-1])
		}
	}
	return s, nil
}

func newPort(cfg *Config, g *group, c Port) port {
	p := port{group: g, mac: c.MAC, whileTimer: clock.Never, waitTimer: clock.Never, periodic: clock.Never}
	p.actor = lacp.Participant{SystemPriority: cfg.Priority, System: cfg.System, Key: g.cfg.Key, PortPriority: c.Priority, Port: c.Number,
		State: lacp.Aggregation}
	if p.actor.PortPriority == 0 {
		p.actor.PortPriority = DefaultPriority
	}
	if !g.cfg.Passive {
		p.actor.State |= lacp.Activity
	}
	if g.cfg.Fast {
		p.actor.State |= lacp.Timeout
	}
	p.recordDefault()
	return p
}

// SetMAC gives a port whose link is down the address that its data units come from.
func (s *System) SetMAC(i int, mac eth.MAC) { s.ports[i].mac = mac }

// SetUp says whether the link of a port is up, and what it carries, in bits per second.
func (s *System) SetUp(now clock.Time, i int, up bool, rate uint64) {
	p := &s.ports[i]
	changed := p.up != up || p.rate != rate
	if p.rate = rate; !changed {
		return
	}
	if p.up != up {
		p.enable(now, up)
	}
	s.settle(now, p.group)
}

// Receive takes what has arrived at a port of slow protocols: what follows the Ethernet header of a frame. Those of other protocols
// than link aggregation are left alone. The error is a *lacp.Error of package wire/lacp.
func (s *System) Receive(now clock.Time, i int, b []byte) error {
	p := &s.ports[i]
	if !p.up || len(b) == 0 {
		return nil
	}
	var err error
	switch lacp.Subtype(b[0]) {
	case lacp.SubtypeLACP:
		var u lacp.PDU
		if u, err = lacp.Parse(b); err == nil {
			p.heard++
			p.hear(now, &u)
			s.settle(now, p.group)
		}
	case lacp.SubtypeMarker:
		var m lacp.Marker
		if m, err = lacp.ParseMarker(b); err == nil {
			s.hearMarker(i, m)
		}
	}
	if err != nil {
		p.errors++
	}
	return err
}

// Advance lets timers end.
func (s *System) Advance(now clock.Time) {
	for i := range s.groups {
		g, due := &s.groups[i], false
		for _, p := range g.ports {
			if p.whileTimer <= now {
				p.timeout(now)
				due = true
			}
			due = due || p.periodic <= now || p.waitTimer <= now && p.mux == waiting
		}
		if due {
			s.settle(now, g)
		}
	}
}

// settle lets the machines of a group go on until none has anything to do.
func (s *System) settle(now clock.Time, g *group) {
	for again := true; again; {
		again = false
		g.selectPorts(&s.cfg)
		ready := g.ready(now)
		for _, p := range g.ports {
			again = p.step(now, ready) || again
		}
	}
	for _, p := range g.ports {
		p.period(now)
	}
}

// Deadline returns when Advance, or Transmit, is wanted next.
func (s *System) Deadline() clock.Time {
	next := clock.Never
	if s.waitsToMark() {
		return 0
	}
	for i := range s.ports {
		p := &s.ports[i]
		next = clock.Min(next, clock.Min(p.whileTimer, p.periodic))
		if p.ntt {
			next = clock.Min(next, p.may())
		}
	}
	for i := range s.groups {
		next = clock.Min(next, s.groups[i].waits())
	}
	return next
}

// Transmit returns a frame that is to be sent now, and by which port; nil: there is none.
func (s *System) Transmit(now clock.Time) (port int, frame []byte) {
	if i, f := s.transmitMarker(); f != nil {
		return i, f
	}
	for i := range s.ports {
		if u, ok := s.ports[i].unit(now); ok {
			return i, u.Frame(s.ports[i].mac)
		}
	}
	return 0, nil
}

// Farewell returns a frame that tells a port's partner that the port is detached (6.4.14), for who takes its link away and lets it transmit
// no more: the partner sends nothing there from then on, instead of for as long as the port may be silent. nil: the port does not speak.
func (s *System) Farewell(i int) []byte {
	p := &s.ports[i]
	if !p.speaks() {
		return nil
	}
	u := lacp.PDU{Version: 1, Actor: p.actor, Partner: p.partner}
	u.Actor.State &^= lacp.Synchronization | lacp.Collecting | lacp.Distributing
	return u.Frame(p.mac)
}

// Speaks reports whether the partner of a port speaks.
func (s *System) Speaks(i int) bool { return s.ports[i].receive == current }

// Ports returns the number of ports.
func (s *System) Ports() int { return len(s.ports) }

// Carries reports whether a port takes frames, and whether it may send some.
func (s *System) Carries(i int) (collects, distributes bool) {
	m := s.ports[i].mux
	return m >= collecting, m >= distributing
}

// Status is how a port is.
type Status struct {
	Up bool
	// Receive, Mux and Selected are the states of its machines, in the words of the standard.
	Receive, Mux, Selected string
	// Actor and Partner are the two ends, as the port knows them.
	Actor, Partner lacp.Participant
	// Heard are data units that were received, Sent those that were sent, Markers those that were answered, Errors data units that were
	// invalid, and Timeouts how often the partner has fallen silent.
	Heard, Sent, Markers, Errors, Timeouts uint64
}

// Status returns how a port is.
func (s *System) Status(i int) Status {
	p := &s.ports[i]
	return Status{p.up, receiveNames[p.receive], muxNames[p.mux], selectedNames[p.selected], p.actor, p.partner, p.heard, p.sent, p.markers,
		p.errors, p.timeouts}
}

// Speaks reports whether a partner was heard, and has not fallen silent.
func (s *Status) Speaks() bool { return s.Up && s.Actor.State&lacp.Defaulted == 0 }

// State is how far a port is: down, standby, or the state of its mux machine.
func (s *Status) State() string {
	switch {
	case !s.Up:
		return "down"
	case s.Selected == selectedNames[standby]:
		return s.Selected
	}
	return s.Mux
}

// String describes a port for people.
func (s Status) String() string {
	if !s.Up {
		return "down"
	}
	partner := "a partner that is silent"
	if s.Actor.State&lacp.Defaulted == 0 {
		partner = fmt.Sprintf("%v key %d port %d (%v)", s.Partner.System, s.Partner.Key, s.Partner.Port, s.Partner.State)
	}
	return fmt.Sprintf("%s, %s, with %s", s.Mux, s.Receive, partner)
}

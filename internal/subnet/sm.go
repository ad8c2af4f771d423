package subnet

import (
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet/administration"
	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// stage is what a subnet manager is doing.
type stage uint8

const (
	stageIdle     stage = iota
	stageDiscover       // asking who is there
	stageInherit        // reading what another manager has set
	stageKeys           // taking over ports that have the key of another manager
	stageSetUp          // giving LIDs, tables and keys
	stageActivate       // letting packets through
	stageGroups         // writing tables of GUIDs, and multicast tables
	stageLight          // asking whether something changed
)

// SM is a subnet manager with its subnet administration, bound to one port. It is driven: see the package.
type SM struct {
	cfg   Config
	state mad.SMState
	now   clock.Time
	x     exchange
	stage stage

	cur        *topology.Subnet // being looked at, or the last one that was
	live       *topology.Subnet // the last that was brought up, which is what the administration answers from; nil before
	graph      *routing.Graph   // of cur, with the routes
	routes     *routing.Routes
	routedBy   routing.Options // of routes
	sws        []int32         // node of each switch of the graph
	swOf       []int32         // by node: its number in the graph
	liveGraph  *routing.Graph  // of live
	liveRoutes *routing.Routes

	wantLID map[int32]ib.LID   // by end port of cur
	tables  map[uint64]*tables // by node GUID: what switches are known to have
	lids    map[uint64]LIDRange

	tree       *routing.SpanningTree // of treeOf
	treeOf     *routing.Graph
	firstDone  bool // a first sweep as master has been completed
	inheriting bool // that is to be done, having become master
	recalled   bool // Config.Recall has been asked
	reregister bool // clients are to subscribe and join again
	started    bool
	sweepAt    clock.Time       // the next look
	heavy      bool             // and it is to be a thorough one
	whole      bool             // which reads everything anew, also what cannot have changed
	watched    bool             // the last sweep was begun as master
	past       *topology.Subnet // what need not be read anew in the sweep at hand; nil: all is
	failures   int              // of the sweep
	asleep     []int32          // ports whose link is up and where nobody answers

	others     map[uint64]*otherSM // by port GUID
	pollAt     clock.Time
	pollMissed int
	master     uint64 // port GUID of the master while standby
	guid       uint64 // of our own port
	unsettled  bool   // another is looking around still: what it becomes is to be seen
	handedOver bool   // another has told us to take over
	actCount   uint32

	answers []Packet
	events  []Event
	sa      *administration.SA
}

// EventKind says what an Event is about.
type EventKind uint8

// The kinds of events.
const (
	EventState    EventKind = iota // the manager's state has changed
	EventUp                        // the subnet is up
	EventProblem                   // something is wrong out there, precisely
	EventRouted                    // how the subnet was routed
	EventLIDs                      // LIDs were given: LIDs tells them
	EventTrap                      // a trap came
	EventNotice                    // worth knowing
	EventRefused                   // the subnet cannot be brought up as a whole
	EventRecalled                  // what ports had registered in the past is known
)

// Event is what the driver of a manager may want to write down.
type Event struct {
	At   clock.Time
	Kind EventKind
	Text string
}

// New makes a subnet manager, which begins with Start. The error is a *ConfigError.
func New(cfg Config) (*SM, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &SM{
		cfg: cfg, state: mad.SMDiscovering, sweepAt: clock.Never, pollAt: clock.Never,
		x:      newExchange(cfg.Window, max(0, cfg.Retries), cfg.Timeout),
		tables: map[uint64]*tables{}, lids: map[uint64]LIDRange{}, others: map[uint64]*otherSM{},
	}
	for g, l := range cfg.LIDs {
		s.lids[g] = l
	}
	s.sa = administration.New(administration.Config{
		Prefix: cfg.Prefix, Key: cfg.SAKey, PacketLife: cfg.Limits.PacketLife, Partitions: cfg.Partitions, Policy: cfg.Policy, PrefixRoutes: cfg.PrefixRoutes,
		AssignedGUID: cfg.AssignedGUID,
	}, office{s})
	return s, nil
}

// Start begins the first sweep.
func (s *SM) Start(now clock.Time) {
	s.now = now
	s.started = true
	s.say(EventState, "Entering DISCOVERING state")
	s.discover()
}

// Rescan asks for a thorough sweep as soon as possible.
func (s *SM) Rescan(now clock.Time) {
	s.now = now
	s.soon()
}

// State is the manager's state.
func (s *SM) State() mad.SMState { return s.state }

// Routing is the graph of the last subnet and its routes, nil before.
func (s *SM) Routing() (*routing.Graph, *routing.Routes) { return s.liveGraph, s.liveRoutes }

// LIDs are what ports have or had, by port GUID, to be kept for the next start. It is not to be written.
func (s *SM) LIDs() map[uint64]LIDRange { return s.lids }

// Traffic is how many requests were sent, repeated and given up.
func (s *SM) Traffic() (sent, repeated, lost uint64) { return s.x.Sent, s.x.Retried, s.x.TimedOut }

// Events hands over what has happened since the last call.
func (s *SM) Events() []Event {
	e := s.events
	s.events = nil
	return e
}

func (s *SM) say(kind EventKind, format string, args ...any) {
	s.events = append(s.events, Event{s.now, kind, fmt.Sprintf(format, args...)})
}

func (s *SM) problem(format string, args ...any) { s.say(EventProblem, format, args...) }

// soon has a thorough sweep made when the present one, if any, is over.
func (s *SM) soon() {
	s.heavy, s.whole = true, true
	s.sweepAt = s.now
	s.proceed()
}

// settle is how long a sweep waits for more traps after one: a switch that goes makes all its neighbours send one.
const settle = 10 * time.Millisecond

// trapped has a thorough sweep made in a moment, or after the present one.
func (s *SM) trapped() {
	s.heavy = true
	if at := s.now.Add(settle); s.stage == stageIdle && at.Before(s.sweepAt) {
		s.sweepAt = at
	}
}

// Advance does what is due.
func (s *SM) Advance(now clock.Time) {
	s.now = now
	for {
		transaction, ok := s.x.expired(now)
		if !ok {
			break
		}
		s.unanswered(transaction)
	}
	s.sa.Advance(s.now)
	s.proceed()
}

// Failed tells that a request of ours cannot be delivered or will not be answered, before its time-out.
func (s *SM) Failed(now clock.Time, p *Packet) {
	s.now = now
	if c := p.MAD[1]; c == mad.ClassSubnetDir || c == mad.ClassSubnetLID {
		s.unanswered(p.transaction())
		s.proceed()
		return
	}
	s.sa.Failed(p.client(), p.MAD[:])
}

// Deadline is when Advance is wanted next.
func (s *SM) Deadline() clock.Time {
	d := clock.Min(s.x.deadline(), s.sa.Deadline())
	if s.stage == stageIdle {
		d = clock.Min(d, clock.Min(s.sweepAt, s.pollAt))
	}
	return d
}

// Transmit fills out with MADs to send and returns how many.
func (s *SM) Transmit(now clock.Time, out []Packet) int {
	s.now = now
	n := copy(out, s.answers)
	s.answers = s.answers[:copy(s.answers, s.answers[n:])]
	for n < len(out) {
		slot := s.x.again()
		if slot == nil {
			if slot = s.x.take(); slot == nil {
				break
			}
			if !s.build(slot) {
				s.x.drop(slot)
				continue
			}
		}
		s.x.sent(slot, now)
		out[n] = slot.pkt
		n++
	}
	if n < len(out) {
		s.proceed() // what was not worth sending may have been the last
		if s.x.waiting() > 0 && len(s.x.free) > 0 {
			return n + s.Transmit(now, out[n:])
		}
	}
	return n
}

// Pending says whether Transmit has something to send.
func (s *SM) Pending() bool {
	return len(s.answers) > 0 || len(s.x.retry) > 0 || s.x.waiting() > 0 && len(s.x.free) > 0
}

// Receive takes a MAD.
func (s *SM) Receive(now clock.Time, p *Packet) {
	s.now = now
	h, err := mad.ParseHeader(p.MAD[:])
	if err != nil {
		return
	}
	switch h.Class {
	case mad.ClassSubnetDir, mad.ClassSubnetLID:
		smp, err := mad.ParseSMP(p.MAD[:])
		if err != nil {
			return
		}
		if smp.Method == mad.MethodGetResp {
			s.answered(p, &smp)
		} else {
			s.asked(p, &smp)
		}
		s.proceed()
	case mad.ClassSubnetAdm:
		s.sa.Receive(now, p.client(), p.MAD[:])
		if s.sa.GroupsDue() {
			s.proceed()
		}
	}
}

// build makes the MAD of a request; false: it is not needed any more.
func (s *SM) build(slot *slot) bool {
	w := &slot.w
	method := uint8(mad.MethodGet)
	if w.set {
		method = mad.MethodSet
	}
	smp := mad.NewSMP(method, w.attr, w.mod, uint64(slot.seq))
	smp.MKey = s.keyFor(w)
	var path [mad.MaxHops + 1]uint8
	var hops []uint8
	if w.at != topology.None {
		hops = s.cur.Route(w.at, w.beyond, path[:0])
	}
	if err := smp.Direct(hops); err != nil {
		s.problem("%s is farther away than the %d hops that a directed route can have", s.cur.Name(w.at), mad.MaxHops)
		return false
	}
	if w.set && !s.fill(w, &smp) {
		return false
	}
	slot.pkt = Packet{LID: ib.LIDPermissive}
	smp.Append(slot.pkt.MAD[:0])
	return true
}

// unanswered is called when a request had no answer in its time.
func (s *SM) unanswered(transaction uint32) {
	if w, gaveUp := s.x.lost(transaction); gaveUp {
		s.failed(w, nil)
	}
}

// answered is called with an answer to a request of ours, or what pretends to be one.
func (s *SM) answered(p *Packet, smp *mad.SMP) {
	slot := &s.x.slots[int(p.transaction()&(1<<slotBits-1))%len(s.x.slots)]
	if slot.busy && slot.seq == p.transaction() && (slot.w.attr != smp.AttributeID || slot.w.mod != smp.AttributeModifier) {
		return // not what was asked for: its answer may still come
	}
	w, _, ok := s.x.answered(p.transaction())
	if !ok {
		return
	}
	if smp.StatusCode() != mad.StatusOK {
		s.failed(w, smp)
		return
	}
	s.handle(w, smp)
}

// proceed goes on with the next stage when one has nothing left to do.
func (s *SM) proceed() {
	for s.x.quiet() {
		switch s.stage {
		case stageDiscover:
			s.discovered()
		case stageInherit:
			s.inherited()
			s.decide()
		case stageKeys:
			s.setUp()
		case stageSetUp:
			s.activate()
		case stageActivate:
			s.up()
		case stageGroups:
			s.stage = stageIdle
		case stageLight:
			s.looked()
		case stageIdle:
			if !s.begin() {
				return
			}
		}
	}
}

// begin starts what is due, if anything is.
func (s *SM) begin() bool {
	if !s.started {
		return false
	}
	switch {
	case s.state == mad.SMNotActive:
		return false
	case s.state == mad.SMStandby:
		if s.now.Before(s.pollAt) {
			return false
		}
		s.poll()
	case (s.sa.GroupsDue() || s.sa.GUIDsDue()) && s.live != nil && s.live == s.cur && !s.heavy:
		s.stage = stageGroups
		s.setUpGUIDs()
		if s.sa.GroupsDue() {
			s.setUpGroups()
		}
	case s.now.Before(s.sweepAt):
		return false
	case s.heavy || s.cfg.HeavySweeps || s.live == nil:
		s.discover()
	default:
		s.look()
	}
	return true
}

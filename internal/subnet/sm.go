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

// stage is the current activity of a subnet manager.
type stage uint8

const (
	stageIdle     stage = iota
	stageDiscover       // discovering the subnet
	stageInherit        // reading what another manager has set
	stageVirtual        // reading virtual ports
	stageKeys           // taking over ports that have another manager's key
	stageSetUp          // assigning LIDs, tables and keys
	stageActivate       // activating links
	stageGroups         // writing GUID tables and multicast tables
	stageLight          // checking whether something has changed
	stageWatch          // looking at virtual ports that may have changed
)

// SM is a subnet manager with its subnet administration, bound to one port. The caller drives it: see the
// package.
type SM struct {
	cfg   Config
	state mad.SMState
	now   clock.Time
	x     exchange
	stage stage

	cur        *topology.Subnet // the subnet being discovered, or discovered last
	live       *topology.Subnet // the last that was brought up, on which the administration's answers are based; nil before
	graph      *routing.Graph   // of cur, with the routes
	routes     *routing.Routes
	routedBy   routing.Options // of routes
	sws        []int32         // node of each switch in the graph
	swOf       []int32         // by node: its number in the graph
	liveGraph  *routing.Graph  // of live
	liveRoutes *routing.Routes

	wantLID map[int32]ib.LID   // by end port of cur
	tables  map[uint64]*tables // by node GUID: what is known about switches' tables
	lids    map[uint64]LIDRange

	canVirtual map[uint64]bool // by port GUID: whether the port can have virtual ports, as it has said
	watches    []watch

	tree       *routing.SpanningTree // of treeOf
	treeOf     *routing.Graph
	firstDone  bool // a first sweep as master is complete
	inheriting bool // multicast tables are to be inherited, having become master
	recalled   bool // Config.Recall has been called
	reregister bool // clients are to reregister
	started    bool
	sweepAt    clock.Time       // the next sweep
	heavy      bool             // the next sweep is to be a thorough one
	whole      bool             // and to read everything again, even what cannot have changed
	watched    bool             // the last sweep was begun as master
	past       *topology.Subnet // what need not be read again in the current sweep; nil: everything must
	failures   int              // in the current sweep
	asleep     []int32          // ports whose link is up but where nobody answers

	others     map[uint64]*otherSM // by port GUID
	pollAt     clock.Time
	pollMissed int
	master     uint64 // while standby: port GUID of the master
	guid       uint64 // of this manager's port
	unsettled  bool   // another manager is still discovering: its state is not decided yet
	handedOver bool   // another manager has told this one to take over
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
	EventProblem                   // a precise problem in the subnet
	EventRouted                    // how the subnet was routed
	EventLIDs                      // LIDs were assigned: the method LIDs returns them
	EventTrap                      // a trap was received
	EventNotice                    // worth knowing
	EventRefused                   // the subnet as a whole cannot be brought up
	EventRecalled                  // what ports had registered earlier is known
)

// Event is something that the caller may want to log.
type Event struct {
	At   clock.Time
	Kind EventKind
	Text string
}

// New creates a subnet manager, which does nothing before Start. The error is a *ConfigError.
func New(cfg Config) (*SM, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &SM{
		cfg: cfg, state: mad.SMDiscovering, sweepAt: clock.Never, pollAt: clock.Never,
		x:      newExchange(cfg.Window, max(0, cfg.Retries), cfg.Timeout),
		tables: map[uint64]*tables{}, lids: map[uint64]LIDRange{}, others: map[uint64]*otherSM{}, canVirtual: map[uint64]bool{},
	}
	for g, l := range cfg.LIDs {
		s.lids[g] = l
	}
	s.sa = administration.New(administration.Config{
		Prefix: cfg.Prefix, Key: cfg.SAKey, PacketLife: cfg.Limits.PacketLife, Partitions: cfg.Partitions, Policy: cfg.Policy,
		PrefixRoutes: cfg.PrefixRoutes,
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

// Rescan requests a thorough sweep as soon as possible.
func (s *SM) Rescan(now clock.Time) {
	s.now = now
	s.soon()
}

// State returns the manager's state.
func (s *SM) State() mad.SMState { return s.state }

// Routing returns the graph of the last subnet and its routes; nil before the first.
func (s *SM) Routing() (*routing.Graph, *routing.Routes) { return s.liveGraph, s.liveRoutes }

// LIDs returns the present and earlier LIDs of ports, by port GUID, to be kept for the next start. The
// caller must not modify it.
func (s *SM) LIDs() map[uint64]LIDRange { return s.lids }

// Traffic returns how many requests were sent, retransmitted and given up.
func (s *SM) Traffic() (sent, repeated, lost uint64) { return s.x.Sent, s.x.Retried, s.x.TimedOut }

// Events returns what has happened since the last call.
func (s *SM) Events() []Event {
	e := s.events
	s.events = nil
	return e
}

func (s *SM) say(kind EventKind, format string, args ...any) {
	s.events = append(s.events, Event{s.now, kind, fmt.Sprintf(format, args...)})
}

func (s *SM) problem(format string, args ...any) { s.say(EventProblem, format, args...) }

// soon requests a thorough sweep after the current one, if any.
func (s *SM) soon() {
	s.heavy, s.whole = true, true
	s.sweepAt = s.now
	s.proceed()
}

// settle is how long to wait for more traps after one before a sweep: when a switch goes down, all its
// neighbours send one.
const settle = 10 * time.Millisecond

// trapped requests a thorough sweep in a moment, or after what is being done.
func (s *SM) trapped() {
	s.heavy = true
	s.sweepAt = clock.Min(s.sweepAt, s.now.Add(settle))
	if s.stage == stageWatch {
		s.x.clear() // the sweep looks, too
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

// Failed says that a request cannot be delivered or will not be answered, before its timeout.
func (s *SM) Failed(now clock.Time, p *Packet) {
	s.now = now
	if c := p.MAD[1]; c == mad.ClassSubnetDir || c == mad.ClassSubnetLID {
		s.unanswered(p.transaction())
		s.proceed()
		return
	}
	s.sa.Failed(p.client(), p.MAD[:])
}

// Deadline returns when Advance must be called next.
func (s *SM) Deadline() clock.Time {
	d := clock.Min(s.x.deadline(), s.sa.Deadline())
	if s.stage == stageIdle {
		d = clock.Min(clock.Min(d, s.watchAt()), clock.Min(s.sweepAt, s.pollAt))
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
		s.proceed() // the last ones may turn out to be unnecessary
		if s.x.waiting() > 0 && len(s.x.free) > 0 {
			return n + s.Transmit(now, out[n:])
		}
	}
	return n
}

// Pending reports whether Transmit has something to send.
func (s *SM) Pending() bool {
	return len(s.answers) > 0 || len(s.x.retry) > 0 || s.x.waiting() > 0 && len(s.x.free) > 0
}

// Receive handles a MAD.
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

// build builds the MAD of a request; false: it is not needed any more.
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

// unanswered handles the timeout of a request.
func (s *SM) unanswered(transaction uint32) {
	if w, gaveUp := s.x.lost(transaction); gaveUp {
		s.failed(w, nil)
	}
}

// answered handles a response to one of our requests, or what pretends to be one.
func (s *SM) answered(p *Packet, smp *mad.SMP) {
	slot := &s.x.slots[int(p.transaction()&(1<<slotBits-1))%len(s.x.slots)]
	if slot.busy && slot.seq == p.transaction() && (slot.w.attr != smp.AttributeID || slot.w.mod != smp.AttributeModifier) {
		return // not what was requested: the real response may still come
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

// proceed moves on to the next stage when the current one has nothing left to do.
func (s *SM) proceed() {
	for s.x.quiet() {
		switch s.stage {
		case stageDiscover:
			s.discovered()
		case stageInherit:
			s.inherited()
			s.virtual()
		case stageVirtual:
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
		case stageWatch:
			s.haveWatched()
		case stageIdle:
			if !s.begin() {
				return
			}
		}
	}
}

// begin starts what is due, if anything.
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
		if s.now.Before(s.watchAt()) {
			return false
		}
		s.watchPorts()
	case s.heavy || s.cfg.HeavySweeps || s.live == nil:
		s.discover()
	default:
		s.look()
	}
	return true
}

package ethernet

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/clock/due"
)

// End is a port of a node of a fabric.
type End struct{ Node, Port int }

// Fabric is switches and stations with the links between them, and what is on these. Its zero value is empty.
type Fabric struct {
	// Deliver takes a frame that the host of a station has taken: it is whoever's that has it then.
	Deliver func(now clock.Time, at End, f Ref)
	// Away takes a frame that leaves by a port at which nothing is connected, and that arrives at a time at the other end of the link,
	// wherever that is: it is its taker's then. nil: such frames are lost.
	Away func(at clock.Time, from End, f Ref)
	// Random is the source of which frames links lose; nil: none is lost.
	Random func() uint64
	// Store has the frames of all nodes.
	Store Store

	nodes    []node
	due      due.Times
	arrivals arrivals
	rooms    []int // stations that have room again
}

// node is a switch or a station.
type node struct {
	Site
	station *Station // nil: it is a switch
	lane    int      // the first of those towards its ports
	ways    []int32  // by port: the lane towards what is at the other end of its link
	loss    []uint64 // by port, 2^64 of the share of frames that its link loses; nil: none
	told    bool     // it is among those with room again
}

// AddSwitch adds a switch, whose store must be the fabric's, and returns its number.
func (f *Fabric) AddSwitch(s *Switch) int { return f.add(node{Site: Site{Switch: s}}) }

// AddStation adds a station, whose store must be the fabric's, and returns its number.
func (f *Fabric) AddStation(s *Station) int {
	return f.add(node{Site: Site{Switch: s.Switch}, station: s})
}

func (f *Fabric) add(n node) int {
	for range n.ports {
		n.Peers = append(n.Peers, End{Node: -1})
	}
	n.lane = f.arrivals.add(len(f.nodes), len(n.ports))
	for p := range n.ports {
		n.ways = append(n.ways, int32(n.lane+p)) // a station's host is at the port itself
	}
	f.nodes = append(f.nodes, n)
	f.due = due.New(len(f.nodes))
	for i := range f.nodes {
		f.due.Set(i, f.nodes[i].Switch.Deadline())
	}
	return len(f.nodes) - 1
}

// Site returns a node as a watch sees it.
func (f *Fabric) Site(n int) Site { return f.nodes[n].Site }

// Switch returns a node's switch.
func (f *Fabric) Switch(n int) *Switch { return f.nodes[n].Switch }

// Station returns a node that is a station, or nil.
func (f *Fabric) Station(n int) *Station { return f.nodes[n].station }

// Connect connects two ports. Their rates and delays must be the same. The error is a *FieldError.
func (f *Fabric) Connect(a, b End) error {
	for _, e := range []End{a, b} {
		switch {
		case e.Node < 0 || e.Node >= len(f.nodes):
			return bad("Node", e.Node, fmt.Sprintf("0 to %d", len(f.nodes)-1))
		case e.Port < 0 || e.Port >= len(f.nodes[e.Node].Peers) || f.nodes[e.Node].station != nil && e.Port >= f.nodes[e.Node].station.host:
			return bad("Port", e.Port, fmt.Sprintf("a port of node %d", e.Node))
		case f.nodes[e.Node].Peers[e.Port].Node >= 0 || a == b:
			return bad("Port", e.Port, fmt.Sprintf("one of node %d that is not connected", e.Node))
		}
	}
	x, y := f.port(a), f.port(b)
	if x.cfg.Rate != y.cfg.Rate {
		return bad("Rate", y.cfg.Rate, fmt.Sprintf("%d as at the other end of the link", x.cfg.Rate))
	}
	if x.cfg.Delay != y.cfg.Delay {
		return bad("Delay", y.cfg.Delay, fmt.Sprintf("%v as at the other end of the link", x.cfg.Delay))
	}
	m, n := &f.nodes[a.Node], &f.nodes[b.Node]
	m.Peers[a.Port], m.ways[a.Port] = b, int32(n.lane+b.Port)
	n.Peers[b.Port], n.ways[b.Port] = a, int32(m.lane+a.Port)
	return nil
}

func (f *Fabric) port(e End) *Port { return &f.nodes[e.Node].Switch.ports[e.Port] }

// Send hands a frame to a station, which it is from now on; false: it has no room.
func (f *Fabric) Send(now clock.Time, station int, r Ref) bool {
	x := &f.nodes[station]
	ok := x.station.Send(now, r)
	f.departs(now, x, station)
	f.due.Set(station, x.Switch.Deadline())
	return ok
}

// SendAt is Send for a frame that is no pause and that has a priority, as the station's port would find.
func (f *Fabric) SendAt(now clock.Time, station int, priority uint8, r Ref) bool {
	x := &f.nodes[station]
	if !x.station.sendAt(now, priority, r) {
		return false
	}
	f.departs(now, x, station)
	f.due.Set(station, x.Switch.Deadline())
	return true
}

// Arrive lets a frame arrive at a port at a time that is not over: from the other end of a link that is elsewhere. It is the fabric's
// then.
func (f *Fabric) Arrive(at clock.Time, to End, r Ref) {
	f.arrivals.push(f.nodes[to.Node].lane+to.Port, at, r)
}

// Room returns a station that has room again after Send had none, with the priorities; false: there is none.
func (f *Fabric) Room() (station int, priorities uint8, ok bool) {
	for len(f.rooms) > 0 {
		station = f.rooms[len(f.rooms)-1]
		f.rooms = f.rooms[:len(f.rooms)-1]
		f.nodes[station].told = false
		if priorities = f.nodes[station].station.Room(); priorities != 0 {
			return station, priorities, true
		}
	}
	return 0, 0, false
}

// HasRoom reports whether Room may have a station.
func (f *Fabric) HasRoom() bool { return len(f.rooms) > 0 }

// Wake notes that something was done to a node directly.
func (f *Fabric) Wake(node int) { f.due.Set(node, f.nodes[node].Switch.Deadline()) }

// Deadline returns when Advance is wanted next.
func (f *Fabric) Deadline() clock.Time {
	return clock.Min(f.due.First(), f.arrivals.first())
}

// Advance lets happen what is due, in the order of time; of what is due at once first arrivals by nodes and ports, then nodes.
func (f *Fabric) Advance(now clock.Time) { f.Proceed(now) }

// Proceed is Advance, and returns when that is wanted next.
func (f *Fabric) Proceed(now clock.Time) (next clock.Time) {
	for {
		arrives, turn := f.arrivals.first(), f.due.First()
		switch next = min(arrives, turn); {
		case next > now:
			return next
		case arrives > turn:
			f.turn(turn, f.due.Next())
			continue
		}
		a := f.arrivals.pop()
		if behind := f.arrivals.peek(); behind != 0 {
			f.Store.prefetch(behind)
		}
		f.arrive(a)
	}
}

// arrive brings a frame to the end of a link.
func (f *Fabric) arrive(a arrival) {
	x := &f.nodes[a.node]
	if x.station != nil && int(a.port) == x.station.host {
		f.Deliver(a.at, End{int(a.node), int(a.port)}, a.frame)
		return
	}
	if x.station != nil && x.station.passes && f.Deliver != nil {
		f.passPause(&a, x)
	}
	if x.station != nil && f.Deliver != nil && x.station.pass(a.at, a.port, a.frame) {
		f.Deliver(a.at, End{int(a.node), x.station.host}, a.frame)
		return
	}
	apart := min(f.arrivals.first(), f.due.First()) > a.at
	s := x.Switch
	s.apart = apart && x.station == nil
	s.Receive(a.at, int(a.port), a.frame)
	s.apart = false
	due := s.Deadline()
	if apart && due <= a.at { // nothing else is next
		f.turn(a.at, int(a.node))
		return
	}
	if len(s.out) > 0 {
		f.departs(a.at, x, int(a.node))
	}
	f.due.Set(int(a.node), due)
}

// turn lets a node send.
func (f *Fabric) turn(now clock.Time, i int) {
	x := &f.nodes[i]
	x.Switch.Advance(now)
	f.departs(now, x, i)
	f.due.Set(i, x.Switch.Deadline())
	if x.station != nil && x.station.refused != 0 && !x.told {
		x.told = true
		f.rooms = append(f.rooms, i)
	}
}

// departs takes what leaves a node.
func (f *Fabric) departs(now clock.Time, x *node, i int) {
	s := x.Switch
	for s.taken < len(s.out) {
		d := s.out[s.taken]
		s.taken++
		f.depart(now, x, i, d)
	}
	s.out, s.taken = s.out[:0], 0
}

func (f *Fabric) depart(now clock.Time, x *node, i int, d Departure) {
	to := x.Peers[d.Port]
	if x.station != nil && d.Port == x.station.host && f.Deliver != nil {
		if to = (End{i, d.Port}); d.At <= now {
			f.Deliver(now, to, d.Frame)
			return
		}
	}
	switch {
	case x.loss != nil && f.lose(x, d.Port):
		if to.Node < 0 {
			to = End{i, d.Port}
		}
		f.port(to).counters.Dropped.Lost++
		f.Store.Drop(d.Frame)
	case to.Node >= 0:
		f.arrivals.push(int(x.ways[d.Port]), d.At, d.Frame)
	case f.Away != nil:
		f.Away(d.At, End{i, d.Port}, d.Frame)
	default: // nobody is there
		f.Store.Drop(d.Frame)
	}
}

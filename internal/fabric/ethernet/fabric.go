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

	nodes    []*node
	switches members // which of them are switches, and when they want their turns
	stations members // and which are stations: when something arrives, they send, or their hosts want a turn
	arrivals arrivals
	rooms    []int // stations that have room again
	visited  int   // the station that is visited, from 1 on; 0: none is
	cold     bool  // other fabrics have their turns between (Prefetch): frames are asked for before they arrive, too
}

// members are the nodes of one kind.
type members struct {
	due due.Times
	all []int32 // the numbers of the nodes
}

// next returns the node that comes next.
func (m *members) next() int { return int(m.all[m.due.Next()]) }

// node is a switch or a station.
type node struct {
	Site
	station *Station   // nil: it is a switch
	member  int32      // its number among those
	lane    int32      // the first of those towards its ports
	ways    []int32    // by port: the lane towards what is at the other end of its link; -1: nothing is, or the port is at a host
	loss    []uint64   // by port, 2^64 of the share of frames that its link loses; nil: none
	told    bool       // it is among those with room again
	wants   clock.Time // when the host of a station wants its turn
	arrives clock.Time // when the next frame arrives at a station
	from    int32      // by which lane
	busy    int32      // on how many lanes to a station there are frames
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
	n.lane = int32(f.arrivals.add(len(f.nodes), len(n.ports), n.station != nil))
	for range n.ports {
		n.ways = append(n.ways, -1)
	}
	n.wants, n.arrives = clock.Never, clock.Never
	kind := &f.switches
	if n.station != nil {
		kind = &f.stations
	}
	n.member = int32(len(kind.all))
	kind.all = append(kind.all, int32(len(f.nodes)))
	f.nodes = append(f.nodes, &n)
	f.switches.due, f.stations.due = due.New(len(f.switches.all)), due.New(len(f.stations.all))
	for i := range f.nodes {
		f.Wake(i)
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
	m, n := f.nodes[a.Node], f.nodes[b.Node]
	m.Peers[a.Port], m.ways[a.Port] = b, n.lane+int32(b.Port)
	n.Peers[b.Port], n.ways[b.Port] = a, m.lane+int32(a.Port)
	return nil
}

func (f *Fabric) port(e End) *Port { return &f.nodes[e.Node].Switch.ports[e.Port] }

// Send hands a frame to a station, which it is from now on; false: it has no room.
func (f *Fabric) Send(now clock.Time, station int, r Ref) bool {
	x := f.nodes[station]
	ok := x.station.Send(now, r)
	f.departs(now, x, station)
	f.settle(x, station)
	return ok
}

// SendAt is Send for a frame that is an IP packet without a tag and that has a priority, as the station's port would find.
func (f *Fabric) SendAt(now clock.Time, station int, priority uint8, r Ref) bool {
	x := f.nodes[station]
	if way := x.ways[wire]; x.station.host == 1 && way >= 0 && x.loss == nil {
		if at, ok := x.station.sendAtOnce(now, priority, r); ok { // as nearly always
			f.push(way, at, r)
			f.settle(x, station)
			return true
		}
	}
	if !x.station.sendAt(now, priority, r) {
		return false
	}
	f.departs(now, x, station)
	f.settle(x, station)
	return true
}

// Arrive lets a frame arrive at a port at a time that is not over: from the other end of a link that is elsewhere. It is the fabric's
// then.
func (f *Fabric) Arrive(at clock.Time, to End, r Ref) {
	f.push(f.nodes[to.Node].lane+int32(to.Port), at, r)
}

// push puts a frame on the way to a port, by its lane.
func (f *Fabric) push(lane int32, at clock.Time, r Ref) {
	node := f.arrivals.push(lane, at, r)
	if node < 0 {
		return
	}
	x := f.nodes[node]
	if f.arrivals.lanes[lane].count == 1 {
		x.busy++
	}
	if at < x.arrives || at == x.arrives && lane < x.from {
		x.arrives, x.from = at, lane
		f.stations.due.Set(int(x.member), clock.Min(f.stations.due.Get(int(x.member)), at))
	}
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
func (f *Fabric) Wake(node int) {
	x := f.nodes[node]
	if x.station != nil {
		f.settle(x, node)
		return
	}
	f.switches.due.Set(int(x.member), x.Switch.Deadline())
}

// settle notes when a station wants to go on.
func (f *Fabric) settle(x *node, i int) {
	if i == f.visited-1 {
		return
	}
	f.stations.due.Set(int(x.member), min(x.arrives, x.Switch.Deadline(), x.wants))
}

// Visit begins with what happens at a station and its host, up to Want. It returns when the host wants its turn.
func (f *Fabric) Visit(station int) (wants clock.Time) {
	f.visited = station + 1
	return f.nodes[station].wants
}

// Want says when the host of a station wants its next turn, whatever arrives; clock.Never, as before: not on its own account.
func (f *Fabric) Want(station int, at clock.Time) {
	x := f.nodes[station]
	x.wants, f.visited = at, 0
	f.settle(x, station)
}

// Deadline returns when Advance is wanted next.
func (f *Fabric) Deadline() clock.Time { return clock.Min(f.SwitchesDeadline(), f.StationsDeadline()) }

// SwitchesDeadline returns when something happens next at a switch.
func (f *Fabric) SwitchesDeadline() clock.Time {
	return clock.Min(f.switches.due.First(), f.arrivals.first())
}

// StationsDeadline returns when something happens next at a station or its host.
func (f *Fabric) StationsDeadline() clock.Time { return f.stations.due.First() }

// NextStation returns at which station something happens next, or its host: the one with the lowest number of several. many: there are
// several.
func (f *Fabric) NextStation() (station int, many bool) {
	first, many := f.stations.due.Soonest()
	return int(f.stations.all[first]), many
}

// Advance lets happen what is due, in the order of time; of what is due at once first what arrives at switches, by nodes and ports, then
// what nodes do.
func (f *Fabric) Advance(now clock.Time) {
	for {
		switches, stations := f.SwitchesDeadline(), f.StationsDeadline()
		switch {
		case min(switches, stations) > now:
			return
		case stations < switches:
			i := f.stations.next()
			f.AdvanceStation(stations, i)
			f.settle(f.nodes[i], i)
		default:
			f.AdvanceSwitches(switches)
		}
	}
}

// AdvanceSwitches is Advance for switches alone. Nothing may have been left undone at stations that arrives until then.
func (f *Fabric) AdvanceSwitches(now clock.Time) {
	for {
		arrives, turn := f.arrivals.first(), f.switches.due.First()
		switch {
		case min(arrives, turn) > now:
			return
		case arrives > turn:
			f.turn(turn, f.switches.next())
			continue
		}
		a := f.arrivals.pop()
		if f.cold {
			f.Store.prefetch(f.arrivals.peek())
		}
		f.arrive(a)
	}
}

// StationDeadline returns when something happens next at a station, without its host.
func (f *Fabric) StationDeadline(station int) clock.Time {
	x := f.nodes[station]
	return min(x.arrives, x.Switch.Deadline())
}

// AdvanceStation is Advance for a station that is visited. Nothing may have been left undone at switches that arrives until now.
func (f *Fabric) AdvanceStation(now clock.Time, station int) {
	x := f.nodes[station]
	for {
		turn := x.Switch.Deadline()
		switch {
		case min(x.arrives, turn) > now:
			return
		case x.arrives > turn:
			f.stationTurn(turn, x, station)
			continue
		}
		l := &f.arrivals.lanes[x.from]
		a := l.pop()
		switch {
		case l.count == 0:
			x.busy--
		case f.cold:
			f.Store.prefetch(l.place(0).frame)
		}
		if x.busy > 1 || x.busy == 1 && l.count == 0 {
			x.from, x.arrives = f.arrivals.earliest(x)
		} else {
			x.arrives = l.at
		}
		f.reach(x, a)
	}
}

// reach brings a frame to a station.
func (f *Fabric) reach(x *node, a arrival) {
	switch {
	case int(a.port) == x.station.host:
		f.Deliver(a.at, End{int(a.node), int(a.port)}, a.frame)
		return
	case x.station.passes && f.Deliver != nil:
		f.passPause(&a, x)
	}
	if f.Deliver != nil && x.station.pass(a.at, a.port, a.frame) {
		f.Deliver(a.at, End{int(a.node), x.station.host}, a.frame)
		return
	}
	x.Switch.Receive(a.at, int(a.port), a.frame)
	f.departs(a.at, x, int(a.node))
}

// stationTurn lets a station send.
func (f *Fabric) stationTurn(now clock.Time, x *node, i int) {
	x.Switch.Advance(now)
	f.departs(now, x, i)
	if x.station.refused != 0 && !x.told {
		x.told = true
		f.rooms = append(f.rooms, i)
	}
}

// arrive brings a frame to a switch.
func (f *Fabric) arrive(a arrival) {
	x := f.nodes[a.node]
	apart := f.SwitchesDeadline() > a.at
	s := x.Switch
	s.apart = apart
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
	f.switches.due.Set(int(x.member), due)
}

// turn lets a switch send.
func (f *Fabric) turn(now clock.Time, i int) {
	x := f.nodes[i]
	x.Switch.Advance(now)
	f.departs(now, x, i)
	f.switches.due.Set(int(x.member), x.Switch.Deadline())
}

package sim

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
)

// Switch is a node that forwards packets between sockets, where ports are plugged in. It may be a whole
// fabric of switches. Its own links decide how long that takes and what is lost.
type Switch interface {
	// Advance does what is due.
	Advance(now clock.Time)
	// Deadline is when Advance is wanted next.
	Deadline() clock.Time
	// Accept takes a packet from the port at a socket, and keeps a copy; false: it has no room.
	Accept(now clock.Time, socket int, packet []byte) bool
	// Collect returns a packet that leaves by a socket, valid until the next call; false: there is none.
	Collect(now clock.Time) (socket int, packet []byte, ok bool)
	// Room returns a socket where there is room again after Accept has returned false, each once; false:
	// there is none.
	Room() (socket int, ok bool)
}

// Node is a switch's place in the network.
type Node struct {
	place
	network *Network
	sw      Switch
	sockets map[int]*socket
}

// socket is where a port is plugged in at a switch.
type socket struct {
	node   *Node
	number int
	lane   lane
}

// AddSwitch makes a switch part of the network.
func (n *Network) AddSwitch(s Switch) *Node {
	x := &Node{network: n, sw: s, sockets: make(map[int]*socket)}
	n.processes[0].join(x)
	return x
}

// Plug plugs an engine in at a socket of the switch. What it sends goes there, and nowhere else; packets
// are as the switch wants them, by the port's Codec or from the engine.
func (x *Node) Plug(number int, addr netip.Addr, e Engine) *Port {
	p := x.network.port(addr, e, x.network.processes[0])
	p.socket = &socket{node: x, number: number, lane: lane{to: p, rank: rank(p, lanes)}}
	x.sockets[number] = p.socket
	return p
}

// Wake gives the switch a turn in the next step, because something was done to it from elsewhere.
func (x *Node) Wake() { x.process.wake(x.index) }

func (x *Node) advance(now clock.Time) { x.sw.Advance(now) }
func (x *Node) deadline() clock.Time   { return x.sw.Deadline() }

// turn delivers what leaves the switch, and wakes the ports for which there is room again.
func (x *Node) turn(n *Network) {
	for number, b, ok := x.sw.Collect(n.now); ok; number, b, ok = x.sw.Collect(n.now) {
		s := x.sockets[number]
		if s == nil {
			n.Stats.Unroutable++
			continue
		}
		p := n.take()
		p.hold(b)
		p.ends = nil
		at, room := s.lane.to.serve(n.now)
		if !room {
			n.Stats.Overflowed++
			n.drop(p)
			continue
		}
		n.arrives(&s.lane, p, at)
	}
	for number, ok := x.sw.Room(); ok; number, ok = x.sw.Room() {
		if s := x.sockets[number]; s != nil {
			s.lane.to.Wake()
		}
	}
}

// enter sends a packet into the switch where its port is plugged in. What the switch has no room for waits
// at the port.
func (n *Network) enter(from *Port, o *frame.Out) {
	p := n.take()
	p.fill(from, o)
	if n.Filter != nil && !n.Filter(from, nil, p.data()) {
		n.Stats.Lost++
		n.drop(p)
		return
	}
	from.refused.add(p)
	from.flush(n)
}

// flush sends what the switch had no room for; false: it still has none.
func (p *Port) flush(n *Network) bool {
	s := p.socket
	if s == nil || p.refused.count == 0 {
		return true
	}
	s.node.Wake()
	for p.refused.count > 0 {
		if !s.node.sw.Accept(n.now, s.number, p.refused.first().data()) {
			return false
		}
		n.drop(p.refused.remove())
	}
	return true
}

// Package ethernet makes a fabric of Ethernet switches a switch of the simulated network, so that engines at its stations talk
// through queues, pauses and marks in virtual time.
package ethernet

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sim"
)

// Fabric is a fabric of Ethernet switches as a sim.Switch, whose sockets are its stations. What a station has no room for, because
// its link is slower or paused, waits at the port, with all that is behind it.
type Fabric struct {
	*ethernet.Fabric
	// Node is the fabric's place in the network.
	Node *sim.Node
	// Refused counts packets from ports that are no Ethernet frames.
	Refused uint64

	arrived []arrival
	taken   int
	buf     []byte
}

// arrival is a frame that has arrived at a station.
type arrival struct {
	station int
	frame   ethernet.Ref
}

var _ sim.Switch = (*Fabric)(nil)

// Add makes a fabric part of the network. It takes what the fabric delivers.
func Add(n *sim.Network, f *ethernet.Fabric) *Fabric {
	x := &Fabric{Fabric: f}
	f.Deliver = func(_ clock.Time, at ethernet.End, r ethernet.Ref) {
		x.arrived = append(x.arrived, arrival{at.Node, r})
	}
	x.Node = n.AddSwitch(x)
	return x
}

// Plug plugs an engine in at a station. Its packets are whole frames without frame check sequence.
func (f *Fabric) Plug(station int, addr netip.Addr, e sim.Engine) *sim.Port {
	p := f.Node.Plug(station, addr, e)
	p.Codec = whole{}
	return p
}

// Accept implements sim.Switch.
func (f *Fabric) Accept(now clock.Time, socket int, packet []byte) bool {
	r := f.Store.Put(packet, 0)
	if r == 0 {
		f.Refused++
		return true
	}
	if f.Send(now, socket, r) {
		return true
	}
	f.Store.Drop(r)
	return false
}

// Collect implements sim.Switch.
func (f *Fabric) Collect(clock.Time) (socket int, packet []byte, ok bool) {
	if f.taken == len(f.arrived) {
		f.arrived, f.taken = f.arrived[:0], 0
		return 0, nil, false
	}
	a := f.arrived[f.taken]
	f.taken++
	f.buf = f.Store.Append(f.buf[:0], a.frame)
	f.Store.Drop(a.frame)
	return a.station, f.buf, true
}

// Room implements sim.Switch.
func (f *Fabric) Room() (socket int, ok bool) {
	socket, _, ok = f.Fabric.Room()
	return socket, ok
}

// whole is the codec of ports whose packets are whole frames already.
type whole struct{}

// Seal implements sim.Codec.
func (whole) Seal(b []byte, o *frame.Out) []byte {
	return append(append(append(b, o.Head[o.HeadStart:o.HeadEnd]...), o.Payload...), o.Tail[:o.TailLen]...)
}

// Open implements sim.Codec.
func (whole) Open(in *frame.In) bool { return in.Raw }

// Package infiniband makes an InfiniBand fabric a switch of the simulated network, so that engines at its
// channel adapters talk through its routing tables, queues and credits in virtual time, and subnet managers
// configure it there.
package infiniband

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Fabric is an InfiniBand fabric as a sim.Switch. Management datagrams of QP0 and QP1 that are handed to
// Manage arrive in no time; packets of data take theirs.
type Fabric struct {
	*fabric.Fabric
	// Node is the fabric's place in the network.
	Node *sim.Node
	// Deliver, if set, takes management datagrams that arrive at a port and are not for a Manager there.
	Deliver func(now clock.Time, at fabric.Place, p *fabric.Packet)
	// Refused counts packets from ports that are not packets of the port's InfiniBand transport.
	Refused uint64

	network  *sim.Network
	managers map[fabric.Place]*Manager
	sockets  map[fabric.Place]int
	places   []fabric.Place // by socket
	arrived  []int          // sockets where packets wait
	room     []int          // sockets that accept packets again
	taken    [1]*fabric.Parcel
}

var _ sim.Switch = (*Fabric)(nil)

// Add makes a fabric part of the network.
func Add(n *sim.Network, f *fabric.Fabric) *Fabric {
	x := &Fabric{Fabric: f, network: n, managers: map[fabric.Place]*Manager{}, sockets: map[fabric.Place]int{}}
	x.Node = n.AddSwitch(x)
	return x
}

// Plug plugs an engine in at a port of a channel adapter. Its packets are those of an InfiniBand link, from
// the LRH to the ICRC; NewCodec makes them of a transport's.
func (f *Fabric) Plug(at fabric.Place, e sim.Engine) *sim.Port {
	f.Fabric.Plug(f.network.Now(), at, true)
	f.Node.Wake()
	socket := len(f.places)
	f.places = append(f.places, at)
	f.sockets[at] = socket
	return f.Node.Plug(socket, frame.LIDAddr(f.PortInfo(at).LID), e)
}

// Accept implements sim.Switch.
func (f *Fabric) Accept(now clock.Time, socket int, packet []byte) bool {
	ok, err := f.Transmit(now, f.places[socket], packet, nil, nil)
	if err != nil {
		f.Refused++
		return true
	}
	return ok
}

// Collect implements sim.Switch.
func (f *Fabric) Collect(now clock.Time) (socket int, packet []byte, ok bool) {
	if f.taken[0] != nil {
		f.Release(now, f.taken[:])
	}
	f.listen()
	for len(f.arrived) > 0 {
		last := len(f.arrived) - 1
		socket = f.arrived[last]
		if f.Fabric.Collect(now, f.places[socket], f.taken[:]) > 0 {
			return socket, f.taken[0].Bytes(), true
		}
		f.arrived = f.arrived[:last]
	}
	return 0, nil, false
}

// Room implements sim.Switch.
func (f *Fabric) Room() (socket int, ok bool) {
	f.listen()
	last := len(f.room) - 1
	if last < 0 {
		return 0, false
	}
	socket = f.room[last]
	f.room = f.room[:last]
	return socket, true
}

// listen sorts the fabric's news.
func (f *Fabric) listen() {
	for news, ok := f.News(); ok; news, ok = f.News() {
		socket, there := f.sockets[news.At]
		if news.Arrived && there {
			f.arrived = append(f.arrived, socket)
		}
		if news.Room && there {
			f.room = append(f.room, socket)
		}
	}
}

// Advance implements sim.Switch. It also sends the traps that are due.
func (f *Fabric) Advance(now clock.Time) {
	f.Fabric.Advance(now)
	var trap fabric.Packet
	for o, due := f.Trap(now, &trap); due; o, due = f.Trap(now, &trap) {
		if o.Result == fabric.Delivered {
			f.arrive(now, o.At, &trap)
		}
	}
}

// Deadline implements sim.Switch.
func (f *Fabric) Deadline() clock.Time { return clock.Min(f.Fabric.Deadline(), f.TrapDeadline()) }

// Manage sends a management datagram from a port. What answers it, or the datagram itself, arrives at once.
func (f *Fabric) Manage(now clock.Time, from fabric.Place, p *fabric.Packet) fabric.Outcome {
	o := f.Send(now, from, p)
	f.Node.Wake()
	switch o.Result {
	case fabric.Answered:
		f.arrive(now, from, p)
	case fabric.Delivered:
		f.arrive(now, o.At, p)
	}
	return o
}

func (f *Fabric) arrive(now clock.Time, at fabric.Place, p *fabric.Packet) {
	if m := f.managers[at]; m != nil && !answers(p) {
		m.receive(now, p)
		return
	}
	if f.Deliver != nil {
		f.Deliver(now, at, p)
	}
}

// answers reports whether a datagram is the subnet administration's answer to a program at the port, and not
// to the manager that may be there too.
func answers(p *fabric.Packet) bool {
	class, method := p.MAD[1], p.MAD[3]
	return class == mad.ClassSubnetAdm && method&0x80 != 0 && method != mad.MethodReportResp
}

// Codec is the encapsulation of a transport at a port of the fabric.
type Codec struct {
	encap *encap.Encap
	out   [1]frame.Out
	in    [1]frame.In
}

// NewCodec returns the codec for a port, which must have its LID and its settings.
func (f *Fabric) NewCodec(at fabric.Place) (*Codec, error) {
	e, err := encap.New(encap.InfiniBand, nil, link.Capabilities{MaxSegments: 1, Raw: true, InfiniBand: true, MTU: ib.MTU4096.Bytes()}, 0)
	if err != nil {
		return nil, err
	}
	i, s := f.PortInfo(at), f.Settings(at)
	e.SetPort(&link.Port{LID: i.LID, LMC: i.LMC, SLtoVL: s.SLtoVL})
	return &Codec{encap: e}, nil
}

// Seal implements sim.Codec.
func (c *Codec) Seal(b []byte, o *frame.Out) []byte {
	c.out[0] = *o
	c.encap.Seal(c.out[:])
	o = &c.out[0]
	b = append(b, o.Head[o.HeadStart:o.HeadEnd]...)
	b = append(b, o.Payload...)
	return append(b, o.Tail[:o.TailLen]...)
}

// Open implements sim.Codec.
func (c *Codec) Open(in *frame.In) bool {
	c.in[0] = *in
	if c.encap.Open(c.in[:]) == 0 {
		return false
	}
	*in = c.in[0]
	return true
}

// Package gsi is QP1 of an adapter, the general services interface (IBA 13): it passes messages between that
// queue pair, the connection manager and, at an InfiniBand port, the client of the subnet administration.
package gsi

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/rdma/ibport"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/internal/wakeup"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

const (
	madBatch   = 8
	eventBatch = 16
	// maxRoutes limits the cached routes to peers' QP1.
	maxRoutes = 4096
	// maxHanded limits the waiting MADs from other adapters of this host; the CM retransmits what is lost.
	maxHanded = 1024
)

// Adapter is what QP1 needs of the adapter that it belongs to.
type Adapter interface {
	// CatchUp handles what came before the messages that are about to be handled: errors of the links must
	// not affect connections that are begun now, and what ended a connection came before its peer's DREQ.
	CatchUp(now clock.Time)
	// Prepare completes a route to a peer's QP1. Errors are *command.Error.
	Prepare(r *frame.Route) error
	// Mark gives a route on Ethernet its priority, and what its packets carry of it.
	Mark(r *frame.Route, m cm.Marks)
	// SameHost returns the QP1 of this host to which a message may be handed without a packet, nil if none.
	SameHost(local, remote netip.Addr) *QP1
	// Event handles an event of the connection manager.
	Event(now clock.Time, e *cm.Event)
}

// Config is what a QP1 stands between. All but IB is required.
type Config struct {
	Adapter Adapter
	Engine  *transport.Engine
	CM      *cm.Engine
	IB      *ibport.Port // nil: an Ethernet port
}

// QP1 is the general services interface of an adapter. It is used under the loop lock.
type QP1 struct {
	Config
	in     []transport.Datagram
	out    []cm.Datagram
	events []cm.Event
	routes map[peer]*frame.Route
	// handed are the MADs from other adapters of this host, which bypass the links.
	handed []cm.Datagram
	Bell   *wakeup.Bell  // of its function; nil: that is asked all the time
	taken  []cm.Datagram // scratch
}

// peer is the other end of messages. Addresses are LIDs at an InfiniBand port.
type peer struct {
	local, remote netip.Addr
	sl            uint8
	global        cm.Global
	marks         cm.Marks // Ethernet
}

// New returns the QP1 of an adapter.
func New(cfg Config) QP1 {
	return QP1{
		Config: cfg, in: make([]transport.Datagram, madBatch), out: make([]cm.Datagram, madBatch), events: make([]cm.Event, eventBatch),
		routes: map[peer]*frame.Route{},
	}
}

// Waiting reports whether messages of other adapters of this host wait for Answer.
func (g *QP1) Waiting() bool { return len(g.handed) > 0 }

// Unplug forgets the routes and the messages that wait, because the links are closed.
func (g *QP1) Unplug() {
	g.Forget()
	g.handed = g.handed[:0]
}

// Step passes messages and events on, and reports whether there were any.
func (g *QP1) Step(now clock.Time) bool {
	worked := false
	for n := g.Engine.Datagrams(g.in); n > 0; n = g.Engine.Datagrams(g.in) {
		g.Adapter.CatchUp(now)
		for i := range g.in[:n] {
			g.receive(now, &g.in[i])
		}
		worked = true
		g.Flush(now)
	}
	if g.IB != nil && g.serve(now) {
		worked = true
	}
	return g.Answer(now) || g.Flush(now) || worked
}

func (g *QP1) receive(now clock.Time, d *transport.Datagram) {
	if g.IB != nil && d.MAD[1] == mad.ClassSubnetAdm {
		g.IB.Receive(now, d.MAD[:])
		return
	}
	from := cm.Peer{Local: d.Dst, Remote: d.Src, QPN: d.SrcQP, SL: d.SL, PKey: d.PKey}
	if g.IB == nil { // an answer has the class of what it answers (IBA 13.5.4.3), but not a mark of congestion
		from.Marks.TrafficClass = d.TrafficClass &^ eth.ECNMask
	}
	if d.Global {
		from.Global = cm.Global{Local: d.DGID, Remote: d.SGID, TrafficClass: d.TrafficClass, FlowLabel: d.FlowLabel}
	}
	g.CM.Receive(now, d.MAD[:], from)
}

// Expects reports whether a message for QP1 answers a request to the subnet administration, or concerns a connection, of this one.
func (g *QP1) Expects(m []byte) bool {
	if m[1] == mad.ClassSubnetAdm {
		return g.IB != nil && g.IB.Expects(m)
	}
	return g.CM.Expects(m)
}

// management returns the partition of requests to the subnet administration.
func (g *QP1) management() ib.PKey {
	if g.IB.Virtual() {
		return g.IB.Management()
	}
	return g.IB.MemberKey(ib.PKeyDefault)
}

// Answer passes the messages of this host's other adapters to the connection manager, and what it sends
// on. It reports whether there were any.
func (g *QP1) Answer(now clock.Time) bool {
	if len(g.handed) == 0 {
		return false
	}
	g.taken, g.handed = g.handed, g.taken[:0]
	for i := range g.taken {
		d := &g.taken[i]
		g.CM.Receive(now, d.MAD[:], cm.Peer{Local: d.Remote, Remote: d.Local, QPN: uint32(ib.QPGSI)})
	}
	g.Flush(now)
	return true
}

// Flush empties the connection manager, in a loop: an event may make it send, and a MAD without a route
// makes an event. It reports whether there was anything.
func (g *QP1) Flush(now clock.Time) bool {
	if g.CM.Idle(now) {
		return false
	}
	worked := false
	for {
		events, sent := g.passEvents(now), g.sendAll(now)
		if !events && !sent {
			return worked
		}
		worked = true
	}
}

func (g *QP1) passEvents(now clock.Time) bool {
	worked := false
	for n := g.CM.Events(g.events); n > 0; n = g.CM.Events(g.events) {
		for i := range g.events[:n] {
			g.Adapter.Event(now, &g.events[i])
		}
		clear(g.events[:n])
		worked = true
	}
	return worked
}

// serve passes on the requests of the subnet administration's client to QP1, and answers to those who
// asked.
func (g *QP1) serve(now clock.Time) bool {
	worked := g.IB.Deliver(now)
	for list := g.IB.Requests(); len(list) > 0; list = g.IB.Requests() {
		worked = true
		for i := range list {
			d := &list[i]
			to := peer{local: frame.LIDAddr(g.IB.Settings().LID), remote: frame.LIDAddr(d.DLID), sl: d.SL}
			if r := g.routeIB(to); r != nil {
				// a full queue drops it; it is retransmitted
				_ = g.Engine.SendDatagram(r, uint32(ib.QPGSI), g.management(), d.MAD[:])
			}
		}
	}
	return worked
}

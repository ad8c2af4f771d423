package device

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	madBatch     = 8
	cmEventBatch = 16
	// maxGSIRoutes bounds the routes to peers' QP1 that are kept.
	maxGSIRoutes = 4096
)

// gsiBatch is what passes between QP1 and the connection manager.
type gsiBatch struct {
	in     []transport.Datagram
	out    []cm.Datagram
	events []cm.Event
	routes map[gsiPeer]*frame.Route
}

type gsiPeer struct{ local, remote netip.Addr }

func (g *gsiBatch) init() {
	g.in = make([]transport.Datagram, madBatch)
	g.out = make([]cm.Datagram, madBatch)
	g.events = make([]cm.Event, cmEventBatch)
	g.routes = map[gsiPeer]*frame.Route{}
}

// manage runs the connection manager between QP1 and the programs.
func (a *adapter) manage(now clock.Time) bool {
	g := &a.gsi
	worked := false
	for n := a.engine.Datagrams(g.in); n > 0; n = a.engine.Datagrams(g.in) {
		a.linkErrors(now) // those of before must not meet the connections of now
		if a.engine.Undelivered() {
			a.complete(now) // what ended a QP came ahead of its peer's DREQ
		}
		for i := range g.in[:n] {
			d := &g.in[i]
			a.cm.Receive(now, d.MAD[:], cm.Peer{Local: d.Dst, Remote: d.Src, QPN: d.SrcQP})
		}
		worked = true
		a.manageOut(now)
	}
	return a.manageOut(now) || worked
}

// manageOut empties the connection manager: an event may make it send, and a MAD
// that has no route makes an event.
func (a *adapter) manageOut(now clock.Time) bool {
	worked := false
	for {
		events, sent := a.cmEvents(now), a.sendMADs(now)
		if !events && !sent {
			return worked
		}
		worked = true
	}
}

func (a *adapter) cmEvents(now clock.Time) bool {
	g := &a.gsi
	worked := false
	for n := a.cm.Events(g.events); n > 0; n = a.cm.Events(g.events) {
		for i := range g.events[:n] {
			a.cmEvent(now, &g.events[i])
		}
		clear(g.events[:n])
		worked = true
	}
	return worked
}

func (a *adapter) sendMADs(now clock.Time) bool {
	g := &a.gsi
	worked := false
	for n := a.cm.Transmit(g.out); n > 0; n = a.cm.Transmit(g.out) {
		for i := range g.out[:n] {
			a.sendMAD(now, &g.out[i])
		}
		worked = true
	}
	return worked
}

// sendMAD hands a MAD to QP1; where there is no route the CM hears of it, as if an
// ICMP error had said so.
func (a *adapter) sendMAD(now clock.Time, d *cm.Datagram) {
	g := &a.gsi
	key := gsiPeer{d.Local, d.Remote}
	r := g.routes[key]
	if r == nil {
		r = &frame.Route{Src: d.Local, Dst: d.Remote, SrcPort: sourcePort(d.Local, d.Remote), DstPort: a.cfg.UDPPort}
		if err := a.prepare(r); err != nil {
			kind := link.HostUnreachable
			if unreachableCode(err) == command.NetworkUnreachable {
				kind = link.NetworkUnreachable
			}
			a.cm.Unreachable(now, d.Remote, kind, d.MAD[:])
			return
		}
		if len(g.routes) >= maxGSIRoutes {
			clear(g.routes)
		}
		g.routes[key] = r
	}
	_ = a.engine.SendDatagram(r, d.RemoteQPN, d.MAD[:]) // a full queue loses it; the CM sends it again
}

// unreachable tells the engines of an ICMP error.
func (a *adapter) unreachable(now clock.Time, u link.Unreachable) {
	if u.Kind != link.PacketTooBig && u.QPN <= uint32(ib.QPGSI) { // else it is of no message of the CM
		a.cm.Unreachable(now, u.Dst, u.Kind, u.MAD[:])
	}
	a.engine.Unreachable(now, u)
}

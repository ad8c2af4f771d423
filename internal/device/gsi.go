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
	"github.com/softvpi/softvpi/wire/mad"
)

const (
	madBatch     = 8
	cmEventBatch = 16
	// maxGSIRoutes limits the cached routes to peers' QP1.
	maxGSIRoutes = 4096
	// maxBeside limits the waiting MADs from other adapters of this host; the CM retransmits what is lost.
	// besideRounds is how often they answer each other in one turn.
	maxBeside    = 1024
	besideRounds = 8
)

// gsiBatch holds what passes between QP1 and the connection manager.
type gsiBatch struct {
	in     []transport.Datagram
	out    []cm.Datagram
	events []cm.Event
	routes map[gsiPeer]*frame.Route
	// beside are the MADs from other adapters of this host, which bypass the links.
	beside []cm.Datagram
	taken  []cm.Datagram // scratch
}

type gsiPeer struct {
	local, remote netip.Addr
	sl            uint8 // InfiniBand: service level
	global        cm.Global
}

func (g *gsiBatch) init() {
	g.in = make([]transport.Datagram, madBatch)
	g.out = make([]cm.Datagram, madBatch)
	g.events = make([]cm.Event, cmEventBatch)
	g.routes = map[gsiPeer]*frame.Route{}
}

// manage passes messages and events between QP1, the connection manager and the programs.
func (a *adapter) manage(now clock.Time) bool {
	g := &a.gsi
	worked := false
	for n := a.engine.Datagrams(g.in); n > 0; n = a.engine.Datagrams(g.in) {
		a.linkErrors(now) // earlier errors must not affect the connections of now
		if a.engine.Undelivered() {
			a.complete(now) // what ended a QP came before its peer's DREQ
		}
		for i := range g.in[:n] {
			d := &g.in[i]
			if a.ib != nil && d.MAD[1] == mad.ClassSubnetAdm {
				a.ib.Receive(now, d.MAD[:])
				continue
			}
			from := cm.Peer{Local: d.Dst, Remote: d.Src, QPN: d.SrcQP, SL: d.SL, PKey: d.PKey}
			if d.Global {
				from.Global = cm.Global{Local: d.DGID, Remote: d.SGID, TrafficClass: d.TrafficClass, FlowLabel: d.FlowLabel}
			}
			a.cm.Receive(now, d.MAD[:], from)
		}
		worked = true
		a.manageOut(now)
	}
	if a.ib != nil && a.serveSA(now) {
		worked = true
	}
	return a.manageBeside(now) || a.manageOut(now) || worked
}

// manageBeside passes the MADs of this host's other adapters to the connection manager.
func (a *adapter) manageBeside(now clock.Time) bool {
	g := &a.gsi
	if len(g.beside) == 0 {
		return false
	}
	g.taken, g.beside = g.beside, g.taken[:0]
	for i := range g.taken {
		d := &g.taken[i]
		a.cm.Receive(now, d.MAD[:], cm.Peer{Local: d.Remote, Remote: d.Local, QPN: uint32(ib.QPGSI)})
	}
	a.manageOut(now)
	return true
}

// manageAll lets the connection managers of this host's adapters answer each other.
func (h *Host) manageAll(now clock.Time) {
	for range besideRounds {
		worked := false
		for _, a := range h.adapters {
			if !a.enabled || len(a.gsi.beside) == 0 {
				continue
			}
			worked = true
			a.complete(now) // what ended a QP came before its peer's DREQ
			a.manageBeside(now)
			a.complete(now)
			if a.transmit(now) {
				a.complete(now)
			}
		}
		if !worked {
			return
		}
	}
}

// besideOf returns the adapter of this host to which a MAD may be handed without a packet, nil if none:
// both ports are sockets of this process, so that a packet would arrive, and nothing needs to see it.
func (a *adapter) besideOf(local, remote netip.Addr) *adapter {
	if a.needsWire() {
		return nil
	}
	if p := a.panel.For(local); p == nil || !p.Socket() {
		return nil
	}
	for _, b := range a.host.adapters {
		if b == a || b.cfg.UDPPort != a.cfg.UDPPort || b.cfg.RoCE != a.cfg.RoCE {
			continue
		}
		if p := b.panel.For(remote); p != nil && p.Socket() && b.up() && !b.needsWire() {
			return b
		}
	}
	return nil
}

// manageOut empties the connection manager, in a loop: an event may make it send, and a MAD without a
// route makes an event.
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

// sendMAD passes a MAD to QP1; if there is no route the CM is told as by an ICMP error.
func (a *adapter) sendMAD(now clock.Time, d *cm.Datagram) {
	g := &a.gsi
	if b := a.besideOf(d.Local, d.Remote); b != nil {
		if len(b.gsi.beside) < maxBeside {
			b.gsi.beside = append(b.gsi.beside, *d)
		}
		return
	}
	if a.ib != nil {
		if r := a.gsiRoute(gsiPeer{d.Local, d.Remote, d.SL, d.Global}); r != nil {
			_ = a.engine.SendDatagram(r, d.RemoteQPN, a.ib.MemberKey(d.PKey), d.MAD[:])
		}
		return
	}
	key := gsiPeer{local: d.Local, remote: d.Remote}
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
	_ = a.engine.SendDatagram(r, d.RemoteQPN, d.PKey, d.MAD[:]) // a full queue drops it; the CM retransmits
}

// unreachable passes an ICMP error to the engines.
func (a *adapter) unreachable(now clock.Time, u link.Unreachable) {
	if u.Kind != link.PacketTooBig && u.QPN <= uint32(ib.QPGSI) { // otherwise it does not concern a message of the CM
		a.cm.Unreachable(now, u.Dst, u.Kind, u.MAD[:])
	}
	a.engine.Unreachable(now, u)
}

// serveSA passes on the requests of the subnet administration's client to QP1, and answers to those who
// asked.
func (a *adapter) serveSA(now clock.Time) bool {
	worked := a.ib.Deliver(now)
	for list := a.ib.Requests(); len(list) > 0; list = a.ib.Requests() {
		worked = true
		for i := range list {
			d := &list[i]
			if r := a.gsiRoute(gsiPeer{local: frame.LIDAddr(a.ib.Settings().LID), remote: frame.LIDAddr(d.DLID), sl: d.SL}); r != nil {
				_ = a.engine.SendDatagram(r, uint32(ib.QPGSI), a.ib.MemberKey(ib.PKeyDefault), d.MAD[:]) // a full queue drops it; it is retransmitted
			}
		}
	}
	return worked
}

// gsiRoute returns the route of MADs between two LIDs; nil if the addresses are not LIDs.
func (a *adapter) gsiRoute(k gsiPeer) *frame.Route {
	g := &a.gsi
	if r := g.routes[k]; r != nil {
		return r
	}
	from, ok := frame.AddrLID(k.local)
	to, okTo := frame.AddrLID(k.remote)
	if !ok || !okTo || to == 0 {
		return nil
	}
	r := &frame.Route{Src: k.local, Dst: k.remote, DstPort: a.cfg.UDPPort, IB: frame.InfiniBand{DLID: to, SL: k.sl, PathBits: uint8(from & a.ib.Mask())}}
	if g := &k.global; *g != (cm.Global{}) {
		r.IB.Global, r.IB.SGID, r.IB.DGID = true, g.Local, g.Remote
		r.TrafficClass, r.FlowLabel, r.HopLimit = g.TrafficClass, g.FlowLabel, 0xff // IBA 13.5.4.3
	}
	if a.prepare(r) != nil {
		return nil
	}
	if len(g.routes) >= maxGSIRoutes {
		clear(g.routes)
	}
	g.routes[k] = r
	return r
}

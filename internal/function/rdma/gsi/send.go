package gsi

import (
	"errors"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
)

func (g *QP1) sendAll(now clock.Time) bool {
	worked := false
	for n := g.CM.Transmit(g.out); n > 0; n = g.CM.Transmit(g.out) {
		for i := range g.out[:n] {
			g.send(now, &g.out[i])
		}
		worked = true
	}
	return worked
}

// send hands a MAD to an adapter of the same host, or passes it to QP1, as it does behind what queue pairs that have ended still owe
// their peers: a packet does not overtake theirs. If there is no route the CM is told as by an ICMP error.
func (g *QP1) send(now clock.Time, d *cm.Datagram) {
	if b := g.Adapter.SameHost(d.Local, d.Remote); b != nil && !g.Engine.Owes() {
		if len(b.handed) < maxHanded {
			b.handed = append(b.handed, *d)
			b.Bell.Ring()
		}
		return
	}
	if g.IB != nil {
		if r := g.routeIB(peer{local: d.Local, remote: d.Remote, sl: d.SL, global: d.Global}); r != nil {
			_ = g.Engine.SendDatagram(r, d.RemoteQPN, g.IB.MemberKey(d.PKey), d.MAD[:])
		}
		return
	}
	r, err := g.route(peer{local: d.Local, remote: d.Remote, marks: d.Marks})
	if err != nil {
		kind := link.HostUnreachable
		if errors.Is(err, &command.Error{Code: command.NetworkUnreachable}) {
			kind = link.NetworkUnreachable
		}
		g.CM.Unreachable(now, d.Remote, kind, d.MAD[:])
		return
	}
	_ = g.Engine.SendDatagram(r, d.RemoteQPN, d.PKey, d.MAD[:]) // a full queue drops it; the CM retransmits
}

// Forget forgets the routes: they name the sockets of links, and the LID of an InfiniBand port.
func (g *QP1) Forget() {
	for _, r := range g.routes {
		r.Release()
	}
	clear(g.routes)
}

// route returns the route of MADs on Ethernet.
func (g *QP1) route(k peer) (*frame.Route, error) {
	if r := g.routes[k]; r != nil {
		return r, nil
	}
	r, err := g.keep(k, &frame.Route{Src: k.local, Dst: k.remote})
	if err == nil {
		g.Adapter.Mark(r, k.marks)
	}
	return r, err
}

// Remark lets what is sent from now on have the marks of the port's rules as they are now.
func (g *QP1) Remark() {
	for k, r := range g.routes {
		g.Adapter.Mark(r, k.marks)
	}
}

// routeIB returns the route of MADs between two LIDs; nil if the addresses are not LIDs.
func (g *QP1) routeIB(k peer) *frame.Route {
	if r := g.routes[k]; r != nil {
		return r
	}
	from, ok := frame.AddrLID(k.local)
	to, okTo := frame.AddrLID(k.remote)
	if !ok || !okTo || to == 0 {
		return nil
	}
	r := &frame.Route{Src: k.local, Dst: k.remote, IB: frame.InfiniBand{DLID: to, SL: k.sl, PathBits: uint8(from & g.IB.Mask())}}
	if t := &k.global; *t != (cm.Global{}) {
		r.IB.Global, r.IB.SGID, r.IB.DGID = true, t.Local, t.Remote
		r.TrafficClass, r.FlowLabel, r.HopLimit = t.TrafficClass, t.FlowLabel, 0xff // IBA 13.5.4.3
	}
	r, _ = g.keep(k, r)
	return r
}

// keep completes a route and caches it.
func (g *QP1) keep(k peer, r *frame.Route) (*frame.Route, error) {
	if err := g.Adapter.Prepare(r); err != nil {
		return nil, err
	}
	if len(g.routes) >= maxRoutes {
		g.Forget()
	}
	g.routes[k] = r
	return r, nil
}

package device

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/wire/ib"
)

// needsWire reports whether the port's data must travel as packets: because of a policy, because something captures, impairs,
// limits or blocks them, or because the port is down, so that they are lost.
func (a *adapter) needsWire() bool {
	return a.path == PathWire || a.slowed() || a.blocked() ||
		a.links.Slowed() || a.port.limited() || len(a.links.Taps()) != 0 || !a.carries()
}

// reaches reports whether the adapter's policy allows a connection to an address.
func (a *adapter) reaches(remote netip.Addr) bool {
	if a.path != PathLocal && a.path != PathDirect {
		return true
	}
	for _, o := range a.host.adapters {
		if o.enabled && o.cfg.UDPPort == a.cfg.UDPPort && o.subnet() == a.subnet() && o.owns(remote) {
			return true
		}
	}
	return false
}

// connected reports whether a QP has a peer from which it accepts messages.
func (q *qp) connected() bool {
	return q.tq != nil && q.tq.Route() != nil && (q.tq.State() == command.RTR || q.tq.State() == command.RTS)
}

// peerOf returns the QP of this host that q is connected to, nil if it is elsewhere or not connected back.
// One of the two may still be in RTR: many programs leave the end that only receives there.
func (h *Host) peerOf(q *qp) *qp {
	if !q.connected() || q.tq.Type() == command.UD || q.tq.Type() == command.RawPacket {
		return nil
	}
	route := q.tq.Route()
	for _, a := range h.adapters {
		if !a.enabled || !a.receives(q.adapter, route) {
			continue
		}
		p := a.byNumber[q.tq.DestQPN()]
		if p == nil && a.ib != nil && len(a.port.functions) > 1 {
			continue // they have the same LIDs
		}
		if p == nil || !p.connected() || p.tq.Type() != q.tq.Type().Counterpart() {
			return nil
		}
		if p.tq.Route().Dst != route.Src || p.tq.DestQPN() != q.number {
			return nil
		}
		return p
	}
	return nil
}

// decide returns what the path of q's connection depends on: whether something demands packets, and otherwise the queue
// pair of this host at its other end, nil if there is none.
func (q *qp) decide() (p *qp, e path.Event) {
	a := q.adapter
	p = a.host.peerOf(q)
	switch {
	case q.matchesTags(), p != nil && p.matchesTags(), limited(q, p), a.needsWire(), p != nil && p.adapter.needsWire():
		return p, path.Demand
	case a.ib != nil && (p == nil || !ib.PKeyMatch(q.key(), p.key())): // the fabric would not let it pass
		return p, path.Demand
	}
	return p, path.Permit
}

// apart reports whether the connection of q must use packets, or is no longer one with p.
func (q *qp) apart(p *qp) bool {
	now, e := q.decide()
	return e == path.Demand || q.adapter.ib != nil && now != p
}

// key returns the current P_Key of the queue pair in its port's table.
func (q *qp) key() ib.PKey {
	keys, i := q.adapter.engine.PKeys(), q.adapter.engine.Query(q.tq).Attr.PKeyIndex
	if i >= uint32(len(keys)) {
		return 0
	}
	return keys[i]
}

// entrusted reports whether doorbells of q concern its lease: the programs have the connection, or may be offered it.
func (q *qp) entrusted() bool { return q.delegable || q.tq.Carrier() == path.ByPrograms }

// reroute moves the adapter's connections to the path that they should have now.
func (a *adapter) reroute() {
	now := a.host.now()
	for _, q := range a.byNumber {
		if q.tq != nil {
			q.reroute(now)
		}
	}
}

// reroute moves the connection of q to the path that it should have now.
func (q *qp) reroute(now clock.Time) {
	a := q.adapter
	_, e := q.decide()
	if q.lease != nil && (e == path.Demand || a.path == PathLocal) {
		q.lease.Recall(now)
	}
	if e == path.Demand {
		a.engine.Split(q.tq)
		return
	}
	a.host.join(q)
	if q.lease != nil && q.tq.Local() {
		q.lease.Want(now)
	}
}

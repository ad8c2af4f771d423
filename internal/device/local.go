package device

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
)

// needsWire reports whether the port's data must travel as packets: because of a policy, or because
// something captures or impairs them.
func (a *adapter) needsWire() bool {
	return a.path == PathWire || a.links.Impairment().Enabled() || len(a.links.Taps()) != 0 || a.ib != nil && !a.ib.Active()
}

// reaches reports whether the adapter's policy allows a connection to an address.
func (a *adapter) reaches(remote netip.Addr) bool {
	if a.path != PathLocal && a.path != PathDirect {
		return true
	}
	for _, o := range a.host.adapters {
		if o.enabled && o.cfg.UDPPort == a.cfg.UDPPort && o.owns(remote) {
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
	if !q.connected() || q.tq.Type() == command.UD {
		return nil
	}
	route := q.tq.Route()
	for _, a := range h.adapters {
		if !a.enabled || !a.receives(q.adapter, route) {
			continue
		}
		p := a.byNumber[q.tq.DestQPN()]
		if p == nil || !p.connected() || p.tq.Type() != q.tq.Type() {
			return nil
		}
		if p.tq.Route().Dst != route.Src || p.tq.DestQPN() != q.number {
			return nil
		}
		return p
	}
	return nil
}

// apart reports whether a connection with a peer on this host must use packets: because something needs
// them, or because the InfiniBand fabric would not let them pass.
func (q *qp) apart(p *qp) bool {
	a := q.adapter
	if a.needsWire() || p.adapter.needsWire() {
		return true
	}
	return a.ib != nil && (a.host.peerOf(q) != p || !ib.PKeyMatch(q.key(), p.key()))
}

// key returns the current P_Key of the queue pair in its port's table.
func (q *qp) key() ib.PKey {
	keys, i := q.adapter.engine.PKeys(), q.adapter.engine.Query(q.tq).Attr.PKeyIndex
	if i >= uint32(len(keys)) {
		return 0
	}
	return keys[i]
}

// parted reports whether a connection must leave the local path because of what the subnet manager has set
// since.
func (q *qp) parted() bool {
	if q.adapter.ib == nil || !q.tq.Local() {
		return false
	}
	p := q.adapter.host.peerOf(q)
	return p == nil || q.apart(p)
}

// reroute moves the adapter's connections to the path that they should have now.
func (a *adapter) reroute() {
	now := a.host.now()
	for _, q := range a.byNumber {
		if q.tq == nil {
			continue
		}
		leaves := a.needsWire() || q.parted()
		if r := q.lease; r != nil && (leaves || a.path == PathLocal) && !r.Recall(now) {
			continue // the rest is done when it is owned by the driver
		}
		if leaves {
			if q.tq.Local() {
				a.engine.Split(q.tq)
			}
			continue
		}
		a.host.join(q)
		if q.lease != nil && q.tq.Local() {
			q.lease.Want(now)
		}
	}
}

package device

import (
	"errors"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/transport"
)

const (
	joinTries    = 100
	joinInterval = time.Millisecond
)

// needsWire reports whether packets of the adapter's port must be packets: a
// policy says so, or something looks at them or does something to them.
func (a *adapter) needsWire() bool {
	return a.path == PathWire || a.impairment.Enabled() || len(a.taps) != 0
}

// reaches reports whether the adapter's policy allows a connection to an address.
func (a *adapter) reaches(remote netip.Addr) bool {
	if a.path != PathLocal && a.path != PathDirect {
		return true
	}
	for _, o := range a.host.adapters {
		if o.enabled && o.cfg.UDPPort == a.cfg.UDPPort && o.gids.has(remote) {
			return true
		}
	}
	return false
}

// connected reports whether a QP has a peer that it takes messages of.
func (q *qp) connected() bool {
	return q.tq != nil && q.tq.Route() != nil && (q.tq.State() == command.RTR || q.tq.State() == command.RTS)
}

// peerOf finds the QP of this host that q is connected to, nil where it is
// elsewhere or not connected back. One of the two may still be in RTR: many programs
// leave the end that only receives there.
func (h *Host) peerOf(q *qp) *qp {
	if !q.connected() || q.tq.Type() == command.UD {
		return nil
	}
	route := q.tq.Route()
	for _, a := range h.adapters {
		if !a.enabled || a.cfg.UDPPort != route.DstPort || !a.gids.has(route.Dst) {
			continue
		}
		p := a.byNumber[q.adapter.engine.Query(q.tq).Attr.DestQPN]
		if p == nil || !p.connected() || p.tq.Type() != q.tq.Type() {
			return nil
		}
		if p.tq.Route().Dst != route.Src || a.engine.Query(p.tq).Attr.DestQPN != q.number {
			return nil
		}
		return p
	}
	return nil
}

// join puts q and its peer on the local path where both are of this host and
// nothing needs packets.
func (h *Host) join(q *qp) {
	p := h.peerOf(q)
	if p == nil || q.adapter.needsWire() || p.adapter.needsWire() {
		return
	}
	if q.tq.Local() {
		h.mark(q, p) // one of them was not yet in RTS
		return
	}
	err := q.adapter.engine.Join(h.now(), q.tq, p.tq)
	if err == nil {
		h.mark(q, p)
	}
	if errors.Is(err, transport.ErrNotIdle) && q.joinTries == 0 {
		q.joinTries = joinTries
		a := q.adapter
		a.joining = append(a.joining, q)
		a.joinDue = h.now().Add(joinInterval)
	}
}

// joinAgain tries those that were in the middle of a message.
func (a *adapter) joinAgain(now clock.Time) {
	keep := a.joining[:0]
	for _, q := range a.joining {
		p := a.host.peerOf(q)
		if p == nil || q.tq.Local() || a.needsWire() || p.adapter.needsWire() {
			q.joinTries = 0
			continue
		}
		q.joinTries--
		err := a.engine.Join(now, q.tq, p.tq)
		if err == nil {
			a.host.mark(q, p)
		}
		if errors.Is(err, transport.ErrNotIdle) && q.joinTries > 0 {
			keep = append(keep, q)
			continue
		}
		q.joinTries = 0
	}
	clear(a.joining[len(keep):])
	a.joining = keep
	a.joinDue = now.Add(joinInterval)
}

// reroute takes the adapter's connections to the path that they should have now.
func (a *adapter) reroute() {
	now := a.host.now()
	for _, q := range a.byNumber {
		if q.tq == nil {
			continue
		}
		if r := q.loan; r != nil && (a.needsWire() || a.path == PathLocal) && !r.recall(now) {
			continue // the rest when it is at home
		}
		if a.needsWire() {
			if q.tq.Local() {
				a.engine.Split(now, q.tq)
			}
			continue
		}
		a.host.join(q)
		if q.loan != nil && q.tq.Local() {
			q.loan.want(now)
		}
	}
}

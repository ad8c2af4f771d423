package device

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/lease"
	"github.com/softvpi/softvpi/internal/direct"
)

// mark records for two QPs that have come to the local path whether they may be delegated. Those that were delegated
// before are offered again.
func (h *Host) mark(q, p *qp) {
	if q.lease != nil {
		h.offer(q)
		return
	}
	may := mayDelegate(q, p)
	q.delegable, p.delegable = may, may
}

// offer creates the lease for a QP on the local path and its peer, if their programs may have it. This is
// delayed until one of them is first used: introducing them costs as much as the rest of connecting, and
// many connections stay idle for long.
func (h *Host) offer(q *qp) {
	p := h.peerOf(q)
	if p == nil || !q.tq.Local() {
		return
	}
	if q.lease == nil {
		if !mayDelegate(q, p) {
			return
		}
		r, err := h.leases.Make(&delegatedPair{q, p}, [2]lease.End{q.end(), p.end()})
		if err != nil {
			h.log.Debug("no direct path", "qp", q.number, "peer", p.number, "cause", err)
			return
		}
		q.lease, p.lease = r, r
		q.records, p.records = append(q.records, r), append(p.records, r)
	}
	q.lease.Want(h.now())
}

func mayDelegate(q, p *qp) bool {
	return (lease.Sends(q.tq) || lease.Sends(p.tq)) && lease.Between(q.client.delegates, p.client.delegates) &&
		q.tq.Type() == command.RC && p.lease == nil
}

// end returns the QP as an end of a lease.
func (q *qp) end() lease.End {
	return lease.End{
		Program: q.client.delegates, Engine: q.adapter.engine, QP: q.tq, Send: q.sendRing.Send, Recv: q.recvRing,
		RecvAt: direct.RingAt{
			Arena: q.recvBlock.Arena, Offset: q.recvBlock.Offset,
			Entries: uint32(q.recvGeometry.Entries), Stride: uint32(q.recvGeometry.Stride),
		},
		SendCQ: q.send, RecvCQ: q.recv,
		Handle: uint32(q.handle), Number: q.number, Adapter: q.adapter.index, PD: uint32(q.pd.number),
		Context: q.context, SignalAll: q.signalAll,
	}
}

// dropRecords releases the records of a QP that is destroyed.
func (q *qp) dropRecords() {
	for _, r := range q.records {
		r.Drop()
	}
	q.records = nil
}

// delegatedPair is the two QPs of a lease.
type delegatedPair struct{ q, p *qp }

var (
	_ lease.Owner = (*delegatedPair)(nil)
	_ lease.Queue = (*cq)(nil)
)

// Allow implements lease.Owner.
func (l *delegatedPair) Allow() bool { return l.q.adapter.delegates() && l.p.adapter.delegates() }

// delegates reports whether the adapter's policies allow to delegate its connections.
func (a *adapter) delegates() bool { return !a.needsWire() && a.path != PathLocal }

// Apart implements lease.Owner.
func (l *delegatedPair) Apart() bool { return l.q.apart(l.p) }

// Fail implements lease.Owner.
func (l *delegatedPair) Fail(end int) { [2]*qp{l.q, l.p}[end].fail(command.EventQPFatal) }

// Ended implements lease.Owner.
func (l *delegatedPair) Ended() { l.q.lease, l.p.lease = nil, nil }

// Direct implements lease.Queue.
func (q *cq) Direct() bool {
	return !q.failed && !q.lossy && q.chosen.Interval == 0 && q.ring.Shared() != nil
}

// Timestamps implements lease.Queue.
func (q *cq) Timestamps() bool { return q.times }

// At implements lease.Queue.
func (q *cq) At() direct.RingAt {
	return direct.RingAt{Arena: q.block.Arena, Offset: q.block.Offset, Entries: uint32(q.geometry.Entries),
		Stride: uint32(q.geometry.Stride)}
}

// Produced implements lease.Queue.
func (q *cq) Produced() uint32 { return q.ring.Produced() }

// Channel implements lease.Queue.
func (q *cq) Channel() bool { return q.channel != nil }

// Raise implements lease.Queue.
func (q *cq) Raise() {
	if q.channel != nil && !q.failed {
		q.fire()
	}
}

// Void implements lease.Queue. The waiters look at what was behind the claims.
func (q *cq) Void(owner uint32) int {
	n := q.ring.Shared().Void(owner)
	if n > 0 && !q.failed {
		q.fire()
	}
	return n
}

// export enters a region of a client into its key table.
func (c *Client) export(m *mr) {
	if c.delegates == nil {
		return
	}
	r := m.region
	m.exported = c.delegates.Export(direct.Key{
		Key: r.Key, Adapter: m.pd.adapter.index, PD: uint32(r.PD), Access: uint32(r.Access),
		Start: r.Start(), Length: r.Length, Address: r.Base, Segment: m.segment, Offset: m.offset,
	})
}

// withdraw removes a region from the key table. Programs may still be using it.
func (m *mr) withdraw(c *Client) {
	if m.exported {
		c.delegates.Withdraw(m.pd.adapter.index, m.region.Key)
		m.exported = false
	}
}

// foldAll updates the counters from all leases.
func (h *Host) foldAll() {
	for _, c := range h.clients {
		if c.delegates != nil {
			c.delegates.Fold()
		}
	}
}

package device

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/lease"
	"github.com/softvpi/softvpi/internal/direct"
)

// mark records for two QPs that have come to the local path whether they may be lent. Those that were lent
// before are offered again.
func (h *Host) mark(q, p *qp) {
	if q.loan != nil {
		h.offer(q)
		return
	}
	may := mayLend(q, p)
	q.lendable, p.lendable = may, may
}

// offer creates the loan for a QP on the local path and its peer, if their programs may have it. This is
// delayed until one of them is first used: introducing them costs as much as the rest of connecting, and
// many connections stay idle for long.
func (h *Host) offer(q *qp) {
	p := h.peerOf(q)
	if p == nil || !q.tq.Local() {
		return
	}
	if q.loan == nil {
		if !mayLend(q, p) {
			return
		}
		r, err := h.loans.Make(&lentPair{q, p}, [2]lease.End{q.end(), p.end()})
		if err != nil {
			h.log.Debug("no direct path", "qp", q.number, "peer", p.number, "cause", err)
			return
		}
		q.loan, p.loan = r, r
		q.records, p.records = append(q.records, r), append(p.records, r)
	}
	q.loan.Want(h.now())
}

func mayLend(q, p *qp) bool {
	return (lease.Sends(q.tq) || lease.Sends(p.tq)) && lease.Between(q.client.lends, p.client.lends) &&
		q.tq.Type() == command.RC && p.loan == nil
}

// end returns the QP as an end of a loan.
func (q *qp) end() lease.End {
	return lease.End{
		Program: q.client.lends, Engine: q.adapter.engine, QP: q.tq, Send: q.sendRing.Send, Recv: q.recvRing,
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

// lentPair is the two QPs of a loan.
type lentPair struct{ q, p *qp }

var (
	_ lease.Owner = (*lentPair)(nil)
	_ lease.Queue = (*cq)(nil)
)

// Allow implements lease.Owner.
func (l *lentPair) Allow() bool { return l.q.adapter.lends() && l.p.adapter.lends() }

// lends reports whether the adapter's policies allow to lend its connections.
func (a *adapter) lends() bool { return !a.needsWire() && a.path != PathLocal }

// Apart implements lease.Owner.
func (l *lentPair) Apart() bool { return l.q.apart(l.p) }

// Fail implements lease.Owner.
func (l *lentPair) Fail(end int) { [2]*qp{l.q, l.p}[end].fail(command.EventQPFatal) }

// Ended implements lease.Owner.
func (l *lentPair) Ended() { l.q.loan, l.p.loan = nil, nil }

// Direct implements lease.Queue.
func (q *cq) Direct() bool { return !q.failed && q.chosen.Interval == 0 && q.ring.Shared() != nil }

// At implements lease.Queue.
func (q *cq) At() direct.RingAt {
	return direct.RingAt{Arena: q.block.Arena, Offset: q.block.Offset, Entries: uint32(q.geometry.Entries), Stride: uint32(q.geometry.Stride)}
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
	if c.lends == nil {
		return
	}
	r := m.region
	m.exported = c.lends.Export(direct.Key{
		Key: r.Key, Adapter: m.pd.adapter.index, PD: uint32(r.PD), Access: uint32(r.Access),
		Start: r.Start(), Length: r.Length, Address: r.Base, Segment: m.segment, Offset: m.offset,
	})
}

// withdraw removes a region from the key table. Programs may still be using it.
func (m *mr) withdraw(c *Client) {
	if m.exported {
		c.lends.Withdraw(m.pd.adapter.index, m.region.Key)
		m.exported = false
	}
}

// foldAll updates the counters from all loans.
func (h *Host) foldAll() {
	for _, c := range h.clients {
		if c.lends != nil {
			c.lends.Fold()
		}
	}
}

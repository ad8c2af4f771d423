package device

import (
	"errors"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/transport"
)

// errNotDirect says that the driver keeps a pair for now.
var errNotDirect = errors.New("the pair stays in the driver")

// lend lends a pair that is at rest.
func (r *loan) lend(now clock.Time) error {
	q, p := r.ends[0], r.ends[1]
	if r.state != atHome || q.loan != r || q.tq == nil || p.tq == nil {
		return errNotDirect
	}
	if !r.allowed() || q.premature() || p.premature() {
		q.adapter.engine.Unhold(q.tq)
		p.adapter.engine.Unhold(p.tq)
		return errNotDirect
	}
	if q.adapter.engine.Undelivered() || p.adapter.engine.Undelivered() {
		return transport.ErrNotIdle
	}
	if err := q.adapter.engine.Lend(q.tq); err != nil {
		return err
	}
	r.host.loans.leases = r.host.loans.leases%(1<<32-1) + 1
	r.state, r.begun = lent, r.moved()
	for i := range r.ends {
		if a := r.ends[1-i].client.arena.Len(); r.known[i] != a {
			r.known[i] = a
			r.introduce(i)
		}
	}
	for i := range r.ends {
		c := r.config(i)
		if to := r.ends[1-i].recvRing; to != nil {
			r.record.Way[i].Begin(to.Lend())
		}
		r.ends[i].sendRing.Lend()
		if r.ends[i].sends() {
			r.record.Way[i].Lend(r.host.loans.leases, &c)
		}
	}
	for _, q := range r.ends {
		r.rung(q) // what had already been posted
	}
	return nil
}

// premature reports whether requests wait for q to leave RTR, which the engine must handle.
func (q *qp) premature() bool {
	n, err := q.sendRing.Pending()
	return !q.sends() && (n > 0 || err != nil)
}

// allowed reports whether policies and the completion queues allow the pair to be lent.
func (r *loan) allowed() bool {
	for _, q := range r.ends {
		if !q.tq.Local() || q.adapter.needsWire() || q.adapter.path == PathLocal || q.client.gone {
			return false
		}
		for _, cq := range [2]*cq{q.send, q.recv} {
			if cq.failed || cq.chosen.Interval != 0 || cq.ring.Shared() == nil {
				return false
			}
		}
	}
	return true
}

func (r *loan) introduce(role int) {
	q, p := r.ends[role], r.ends[1-role]
	q.client.cfg.Direct.Introduce(p.client.cfg.Direct, Introduction{
		QP: uint32(q.handle), Number: q.number, Role: uint32(role), Owner: r.owners[role], Record: r.place,
		Now: uint64(r.host.now()),
	})
}

// config returns what the initiator of a direction needs to know.
func (r *loan) config(role int) direct.Terms {
	q, p := r.ends[role], r.ends[1-role]
	own, peer := q.adapter.engine.Query(q.tq).Attr, p.adapter.engine.Query(p.tq).Attr
	c := direct.Terms{
		SendCQ: q.send.shared(), RecvCQ: p.recv.shared(),
		SendStamp: q.send.ring.Produced(), RecvStamp: p.recv.ring.Produced(),
		OwnPD: uint32(q.pd.number), PeerPD: uint32(p.pd.number), OwnAdapter: q.adapter.index, PeerAdapter: p.adapter.index,
		OwnQPN: q.number, PeerQPN: p.number, OwnContext: q.context, PeerContext: p.context,
		Access: peer.Access, PKeyIndex: uint16(peer.PKeyIndex), ServiceLevel: uint16(peer.Route.SL),
		MTU: own.MTU,
	}
	if peer.ResponderResources == 0 {
		c.Access &^= uint32(memory.RemoteRead | memory.RemoteAtomic)
	}
	if q.signalAll {
		c.Flags |= direct.SignalAll
	}
	if own.InitiatorDepth > 0 {
		c.Flags |= direct.Answers
	}
	if q.send.channel != nil {
		c.Flags |= direct.SendChannel
	}
	if p.recv.channel != nil {
		c.Flags |= direct.RecvChannel
	}
	if p.recvRing != nil {
		c.Flags |= direct.Receives
		c.Receive = direct.RingAt{
			Arena: p.recvBlock.Arena, Offset: p.recvBlock.Offset,
			Entries: uint32(p.recvGeometry.Entries), Stride: uint32(p.recvGeometry.Stride),
		}
	}
	return c
}

func (q *cq) shared() direct.RingAt {
	return direct.RingAt{Arena: q.block.Arena, Offset: q.block.Offset, Entries: uint32(q.geometry.Entries), Stride: uint32(q.geometry.Stride)}
}

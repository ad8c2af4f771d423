package lease

import (
	"errors"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/transport"
)

// errNotDirect says that the driver keeps a pair for now.
var errNotDirect = errors.New("the pair stays in the driver")

// delegate delegates a pair that is at rest.
func (r *Lease) delegate(now clock.Time) error {
	q, p := &r.ends[0], &r.ends[1]
	if r.over || !r.DriverOwned() {
		return errNotDirect
	}
	if !r.allowed() || q.premature() || p.premature() {
		q.Engine.Refuse(q.QP)
		return errNotDirect
	}
	if q.Engine.Undelivered() || p.Engine.Undelivered() {
		return transport.ErrNotIdle
	}
	if err := q.Engine.Delegate(q.QP); err != nil {
		if !errors.Is(err, transport.ErrNotIdle) {
			q.Engine.Refuse(q.QP)
		}
		return err
	}
	r.book.leases = r.book.leases%(1<<32-1) + 1
	r.begun = r.moved()
	for i := range r.ends {
		if a := r.acquainted(i); r.known[i] != a {
			r.known[i] = a
			r.introduce(i)
		}
	}
	for i := range r.ends {
		c := r.config(i)
		if to := r.ends[1-i].Recv; to != nil {
			r.record.Way[i].Begin(to.Delegate())
		}
		r.ends[i].Send.Delegate()
		if r.ends[i].sends() {
			r.record.Way[i].Delegate(r.book.leases, &c)
		}
	}
	for i := range r.ends {
		r.rung(i) // what had already been posted
	}
	return nil
}

// allowed reports whether policies and the completion queues allow the pair to be delegated.
func (r *Lease) allowed() bool {
	for i := range r.ends {
		e := &r.ends[i]
		if e.Program.gone || !e.Program.neighbour.Whole() || !e.QP.Local() || !e.SendCQ.Direct() || !e.RecvCQ.Direct() {
			return false
		}
	}
	return r.owner.Allow()
}

// acquainted returns what the program of a role has to know of the other by now.
func (r *Lease) acquainted(role int) acquaintance {
	q, p := r.ends[role].Program, r.ends[1-role].Program
	return acquaintance{arenas: p.arenas(), process: p.neighbour.Process(q.neighbour)}
}

func (r *Lease) introduce(role int) {
	q, p := &r.ends[role], &r.ends[1-role]
	q.Program.neighbour.Introduce(p.Program.neighbour, Introduction{
		QP: q.Handle, Number: q.Number, Role: uint32(role), Owner: r.owners[role], Record: r.place,
	})
}

// config returns what the initiator of a direction needs to know.
func (r *Lease) config(role int) direct.Terms {
	q, p := &r.ends[role], &r.ends[1-role]
	own, peer := q.Engine.Query(q.QP).Attr, p.Engine.Query(p.QP).Attr
	c := direct.Terms{
		SendCQ: q.SendCQ.At(), RecvCQ: p.RecvCQ.At(),
		SendStamp: q.SendCQ.Produced(), RecvStamp: p.RecvCQ.Produced(),
		OwnPD: q.PD, PeerPD: p.PD, OwnAdapter: q.Adapter, PeerAdapter: p.Adapter,
		OwnQPN: q.Number, PeerQPN: p.Number, OwnContext: q.Context, PeerContext: p.Context,
		Access: peer.Access, PKeyIndex: uint16(peer.PKeyIndex), ServiceLevel: uint16(peer.Route.SL),
		MTU: own.MTU, PeerProcess: r.known[role].process,
	}
	if peer.ResponderResources == 0 {
		c.Access &^= uint32(memory.RemoteRead | memory.RemoteAtomic)
	}
	if q.SignalAll {
		c.Flags |= direct.SignalAll
	}
	if own.InitiatorDepth > 0 {
		c.Flags |= direct.Answers
	}
	if q.SendCQ.Channel() {
		c.Flags |= direct.SendChannel
	}
	if p.RecvCQ.Channel() {
		c.Flags |= direct.RecvChannel
	}
	if q.SendCQ.Timestamps() {
		c.Flags |= direct.SendTimes
	}
	if p.RecvCQ.Timestamps() {
		c.Flags |= direct.RecvTimes
	}
	if p.Recv != nil {
		c.Flags |= direct.Receives
		c.Receive = p.RecvAt
	}
	return c
}

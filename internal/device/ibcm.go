package device

import (
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/rdma/ibport"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// pathBits returns the Path field of an address vector for a connection's path.
func (a *adapter) pathBits(t *cm.Attributes) uint8 {
	bits := uint8(t.LocalLID & a.ib.Mask())
	if t.Global {
		bits |= command.PathGlobal
	}
	return bits
}

// judge returns why this port cannot accept a peer's request, as far as its CM cannot tell; 0: it can.
func (a *adapter) judge(t *cm.Attributes) mad.RejectReason {
	_, unnamed := frame.AddrLID(t.LocalGID) // a SIDR_REQ contains no GID
	switch {
	case a.ib == nil: // RoCE: the CM has checked it
		return 0
	case !a.ib.Has(t.LocalLID):
		return mad.RejectInvalidLID
	case !unnamed && !slices.Contains(a.ib.GIDs(), t.LocalGID):
		return mad.RejectInvalidGID
	}
	return 0
}

// waiting makes the id wait for an answer; late is called with ErrTimeout if none has come in time. The
// returned function reports, once, whether the id is still waiting: it was not destroyed, and its adapter
// not disabled.
func (o *cmid) waiting(until clock.Time, late func(now clock.Time, err error)) (still func() bool) {
	a, id := o.adapter, o.id
	over := false
	var w *ibport.Wait
	o.stop = func() {
		over, o.stop = true, nil
		a.ib.End(w)
	}
	still = func() bool {
		if over || o.removed || o.adapter != a || a.ids[id] != o || o.client.cms.Get(o.handle) != o {
			return false
		}
		o.stop()
		return true
	}
	w = a.ib.Await(until, func(now clock.Time) {
		if still() {
			late(now, sa.ErrTimeout)
		}
	})
	return still
}

// leastWait is the minimum time to wait for an answer: what Linux makes of a timeout of 0.
const leastWait = 10 * time.Millisecond

// patienceOf returns the end of a timeout that a program gave in milliseconds.
func patienceOf(now clock.Time, ms uint32) clock.Time {
	return now.Add(max(time.Duration(ms)*time.Millisecond, leastWait))
}

// findIB asks which port has an address, and tells the program, within ms milliseconds.
func (o *cmid) findIB(now clock.Time, remote netip.Addr, ms uint32) {
	if remote.IsMulticast() {
		o.resolved(nil) // membership of a group cannot be asked for
		return
	}
	tell := func(_ clock.Time, err error) {
		if err != nil {
			o.resolved(ibport.Error(remote, err))
			return
		}
		o.resolved(nil)
	}
	still := o.waiting(patienceOf(now, ms), tell)
	o.adapter.ib.Find(now, remote, func(now clock.Time, _ ib.GID, err error) {
		if still() {
			tell(now, err)
		}
	})
}

// findPath asks for the path to the port whose address was resolved, and tells the program, within ms
// milliseconds.
func (o *cmid) findPath(now clock.Time, ms uint32) error {
	if !o.remote.IsValid() || o.remote.IsMulticast() {
		return command.Errorf(command.State, "the address of the id is not resolved")
	}
	tell := func(rec *mad.PathRecord, err error) {
		e := command.Event{Type: command.EventRouteResolved, Object: o.handle, Context: o.context, Adapter: o.adapter.index}
		if err != nil {
			e.Type, e.Status = command.EventRouteError, uint32(ibport.Error(o.remote, err).Code)
		} else {
			e.Param.PrivateLen = uint8(copy(e.Param.Private[:], rec.Append(nil)))
		}
		o.client.event(e)
	}
	still := o.waiting(patienceOf(now, ms), func(_ clock.Time, err error) { tell(nil, err) })
	o.adapter.ib.Reach(now, o.remote, func(_ clock.Time, rec *mad.PathRecord, err error) {
		if still() {
			tell(rec, err)
		}
	})
	return nil
}

// connectIB asks for the path to the peer and then connects. Later failures are reported as events.
func (o *cmid) connectIB(now clock.Time, n cm.Connect, q *qp) error {
	a, remote := o.adapter, n.Remote.Addr()
	o.state = cmConnecting
	o.take(q)
	if n.Timeout == 0 {
		n.Timeout = cm.DefaultConnectTimeout
	}
	until := now.Add(n.Timeout)
	late := func(_ clock.Time, err error) { o.unreached(command.EventUnreachable, ibport.Error(remote, err)) }
	still := o.waiting(until, late)
	n.Private = append([]byte(nil), n.Private...)
	a.ib.Reach(now, remote, func(now clock.Time, rec *mad.PathRecord, err error) {
		if !still() {
			return
		}
		if err != nil {
			late(now, err)
			return
		}
		n.Timeout = until.Sub(now)
		n.LocalGID, n.RemoteGID = rec.SGID.Addr(), rec.DGID.Addr()
		n.MTU, n.SL, n.HopLimit = min(rec.MTU, ib.MTU4096), rec.SL, rec.HopLimit
		if n.TrafficClass == 0 {
			n.TrafficClass = rec.TrafficClass
		}
		n.Path = cm.Path{LocalLID: rec.SLID, RemoteLID: rec.DLID, Global: rec.HopLimit > 1, Rate: rec.Rate, Life: rec.Life,
			PKey: a.ib.MemberKey(rec.PKey)}
		if err := a.cm.Connect(now, o.id, n); err != nil {
			o.unreached(command.EventConnectError, asError(cm.CommandError(err)).(*command.Error))
		}
	})
	return nil
}

// unreached ends an attempt that failed before it started.
func (o *cmid) unreached(typ command.EventType, err *command.Error) {
	o.state = cmEnded
	o.part()
	o.client.event(command.Event{Type: typ, Object: o.handle, Context: o.context, Adapter: o.adapter.index, Status: uint32(err.Code)})
}

// joinGroupIB joins a group at the subnet administration, attaches the QP, and tells the program.
func (o *cmid) joinGroupIB(r *command.CMJoin, q *qp) {
	a, now := o.adapter, o.client.host.now()
	mgid := a.ib.IPMGID(r.Group.IP())
	state := uint8(mad.JoinFull)
	if r.Flags&command.JoinSendOnly != 0 {
		state = mad.JoinSendOnlyFull
	}
	group, pair := r.Group, r.QP
	a.ib.Join(now, mgid, state, func(now clock.Time, rec *mad.MCMemberRecord, err error) {
		if o.removed || o.adapter != a || o.client.cms.Get(o.handle) != o {
			if err == nil {
				a.ib.Leave(now, mgid)
			}
			return
		}
		if q = o.client.qps.Get(pair); err == nil && q != nil && q.tq != nil && state == mad.JoinFull {
			if err = a.attach(q, netip.AddrFrom16(mgid)); err != nil {
				a.ib.Leave(now, mgid)
			}
		}
		if err == nil {
			o.joined = append(o.joined, mgid)
		}
		o.client.event(o.joinedIB(group, mgid, rec, err))
	})
}

// leaveGroups leaves the groups that the id has joined.
func (o *cmid) leaveGroups() {
	for _, mgid := range o.joined {
		if o.adapter == nil {
			break // it left them when it was disabled
		}
		o.adapter.ib.Leave(o.client.host.now(), mgid)
	}
	o.joined = nil
}

// leaveGroupIB undoes joinGroupIB.
func (o *cmid) leaveGroupIB(q *qp, group netip.Addr) error {
	a := o.adapter
	mgid := a.ib.IPMGID(group)
	i := slices.Index(o.joined, mgid)
	if i < 0 {
		return command.Errorf(command.NotFound, "the id is not in the group %v", group)
	}
	o.joined = slices.Delete(o.joined, i, i+1)
	a.ib.Leave(o.client.host.now(), mgid)
	if q == nil || !q.attached(mgid) {
		return nil
	}
	return a.detach(q, netip.AddrFrom16(mgid))
}

// joinedIB returns the event for the success or failure of joining a group.
func (o *cmid) joinedIB(group command.Addr, mgid ib.GID, rec *mad.MCMemberRecord, err error) command.Event {
	e := command.Event{
		Type: command.EventMulticastJoined, Object: o.handle, Context: o.context, Adapter: o.adapter.index,
		Remote: command.Endpoint{Addr: group}, Local: command.Endpoint{Addr: command.Addr(mgid)},
		Param: command.ConnParam{QPN: uint32(ib.QPMulticast), QKey: ib.QKeyRDMAUDP},
	}
	if err != nil {
		e.Type, e.Status = command.EventMulticastError, uint32(ibport.Error(netip.AddrFrom16(mgid), err).Code)
		return e
	}
	e.LID, e.SL, e.Path, e.Param.QKey = uint16(rec.MLID), rec.SL, command.PathGlobal, rec.QKey
	return e
}

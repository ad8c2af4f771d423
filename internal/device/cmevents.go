package device

import (
	"errors"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/function/rdma/ibport"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/wire/mad"
)

// remoteAccess is what peers of a QP that a connection moves may do.
const remoteAccess = uint32(memory.LocalWrite | memory.RemoteWrite | memory.RemoteRead | memory.RemoteAtomic |
	memory.FlushGlobal)

// attributes returns the attributes for a QP on its way to a state; ok is false for a state that is not on
// the way.
func (a *adapter) attributes(t *cm.Attributes, typ command.QPType, to command.QPState) (m command.ModifyQP, ok bool) {
	m, ok = t.ModifyQP(typ, to)
	if m.Mask&command.MaskAccess != 0 {
		m.Access = remoteAccess
	}
	if m.Mask&command.MaskPKey != 0 {
		m.PKeyIndex = ibport.KeyIndex(a.engine.PKeys(), t.PKey)
	}
	if m.Mask&command.MaskRoute != 0 {
		m.Route.SrcIndex = uint16(a.gids.Index(t.LocalGID))
		if t.RemoteLID != 0 {
			m.Route.Path = a.pathBits(t)
		}
	}
	return m, ok
}

// toInit moves a QP that belongs to a connection to Init.
func (q *qp) toInit(qkey uint32) error {
	if q.tq.State() != command.Reset {
		return nil
	}
	m, _ := q.adapter.attributes(&cm.Attributes{}, q.tq.Type(), command.Init)
	if qkey != 0 && m.Mask&command.MaskQKey != 0 {
		m.QKey = qkey
	}
	return q.modify(m)
}

// toRTS moves a QP in Init to RTS.
func (q *qp) toRTS(t *cm.Attributes) error {
	changed := false
	var m command.ModifyQP
	for _, s := range [...]command.QPState{command.RTR, command.RTS} {
		if q.tq.State() >= s && q.tq.State() != command.Err {
			continue // a datagram QP serves any number of ids
		}
		m, _ = q.adapter.attributes(t, q.tq.Type(), s)
		if err := q.change(&m); err != nil {
			return err
		}
		if s == command.RTR && q.cm != nil {
			q.choose(q.cm.choice)
		}
		changed = true
	}
	if changed {
		q.followUp(&m)
	}
	return nil
}

// cmEvent handles an event of the CM and passes it on.
func (a *adapter) cmEvent(now clock.Time, e *cm.Event) {
	if e.Type == cm.EventConnectRequest {
		a.request(now, e)
		return
	}
	o := a.ids[e.ID]
	if o == nil || o.adapter != a || o.id != e.ID {
		return
	}
	out := o.event(e)
	switch e.Type {
	case cm.EventConnectResponse:
		o.state = cmResponded
		if o.space == command.UDP {
			o.state = cmEstablished
		}
		if o.qp != nil {
			if err := o.qp.toRTS(&e.Conn); err != nil {
				a.host.log.Warn("connection dropped: its QP cannot be set up", "adapter", a.name, "peer", e.Remote, "cause", err)
				_ = a.cm.Reject(now, o.id, mad.RejectUnsupported, nil)
				o.state = cmEnded
				o.part()
				out.Type, out.Status = command.EventConnectError, uint32(codeOf(err))
			}
		}
	case cm.EventEstablished:
		o.state = cmEstablished
		if o.qp != nil && o.qp.tq != nil {
			a.host.join(o.qp)
		}
		if o.channel != nil && o.listener == 0 {
			return // it established the connection itself, and does not expect an event
		}
	case cm.EventRejected, cm.EventUnreachable, cm.EventConnectError, cm.EventDisconnected:
		o.state = cmEnded
		o.part()
	}
	o.client.event(out)
}

// codeOf returns the code of a refused command: State if the program moved the QP itself meanwhile.
func codeOf(err error) command.Code {
	var refused *command.Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return command.Internal
}

// event converts an event of the CM to the program's.
func (o *cmid) event(e *cm.Event) command.Event {
	out := e.Command()
	out.Object, out.Context, out.Adapter = o.handle, o.context, o.adapter.index
	if e.Conn.RemoteLID != 0 {
		out.Path = o.adapter.pathBits(&e.Conn)
	}
	return out
}

// request creates an id for a peer's request.
func (a *adapter) request(now clock.Time, e *cm.Event) {
	l := a.ids[e.Listener]
	if l == nil {
		_ = a.cm.Destroy(now, e.ID)
		return
	}
	c := l.client
	reason := a.judge(&e.Conn)
	if l.qpType != 0 && !suits(e.Conn.Type, l.qpType) {
		reason = mad.RejectInvalidTransportType
	}
	if reason == 0 && (c.closed || !a.reaches(e.Remote.Addr())) {
		reason = mad.RejectUnsupported
	}
	if reason != 0 {
		_ = a.cm.Reject(now, e.ID, reason, nil)
		_ = a.cm.Destroy(now, e.ID)
		return
	}
	o := &cmid{space: l.space, qpType: l.qpType, context: l.context, want: a.index, state: cmRequested, adapter: a, id: e.ID,
		local: e.Local, listener: l.handle, channel: l.channel.join()}
	if uint64(c.live()) >= a.limits.ClientObjects {
		_ = a.cm.Reject(now, e.ID, mad.RejectNoResources, nil)
		_ = a.cm.Destroy(now, e.ID)
		return
	}
	h, err := c.addCM(o)
	if err != nil {
		_ = a.cm.Reject(now, e.ID, mad.RejectNoResources, nil)
		_ = a.cm.Destroy(now, e.ID)
		o.channel.leave()
		return
	}
	a.ids[e.ID] = o
	a.objects.CM++
	out := o.event(e)
	out.Object, out.Context, out.NewID = l.handle, l.context, h
	if !c.event(out) {
		o.unplace() // the program will never learn of it, and nothing waits for it
		c.cms.Remove(h)
		o.channel.leave()
	}
}

// claim tells the CM that the program has taken the connection requests among events.
func (c *Client) claim(events []command.Event) {
	c.host.lock()
	defer c.host.unlock()
	c.claimed(events)
}

func (c *Client) claimed(events []command.Event) {
	for i := range events {
		if events[i].Type != command.EventConnectRequest {
			continue
		}
		if o := c.cms.Get(events[i].NewID); o != nil && o.adapter != nil {
			_ = o.adapter.cm.Claim(o.id) // it may have ended meanwhile
		}
	}
}

// part moves the QP of a connection that has ended to error and releases it.
func (o *cmid) part() {
	q := o.qp
	if q == nil {
		return
	}
	o.qp, q.cm = nil, nil
	if q.tq != nil && q.tq.Type() != command.UD && q.tq.State() >= command.RTR {
		q.error()
	}
}

// lost handles a QP that went to error by itself: the peer gets a DREQ, the program EventDisconnected.
func (o *cmid) lost(now clock.Time) {
	if o.adapter != nil {
		_ = o.adapter.cm.Fail(now, o.id) // fails in states before the connection
	}
}

// leave handles the destruction of the QP.
func (o *cmid) leave() {
	if o.adapter != nil && o.state == cmEstablished && o.space != command.UDP {
		_ = o.adapter.cm.Disconnect(o.client.host.now(), o.id, nil)
	}
	o.qp.cm, o.qp = nil, nil
}

// destroyCM destroys a CM id: a connection with a DREQ, a listener with the requests that the program has
// not taken.
func (c *Client) destroyCM(h command.Handle) error {
	o := c.cms.Get(h)
	if o == nil {
		return notFound("CM id", h)
	}
	if o.stop != nil {
		o.stop()
	}
	o.leaveGroups()
	o.unplace()
	o.part()
	c.cms.Remove(h)
	o.channel.leave()
	if c.closed {
		return nil // nobody reads the waiting events, and every id of the program is destroyed anyway
	}
	var orphans []command.Handle
	o.queue().Drop(func(e *command.Event) bool {
		if e.Type < command.EventConnectRequest || e.Object != h {
			return false
		}
		if e.NewID != 0 {
			orphans = append(orphans, e.NewID)
		}
		return true
	})
	for _, n := range orphans {
		_ = c.destroyCM(n)
	}
	return nil
}

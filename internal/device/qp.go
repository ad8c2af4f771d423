package device

import (
	"context"
	"errors"
	"net/netip"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/lease"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/ib"
)

// qp is a queue pair with its rings.
type qp struct {
	handle       command.Handle
	number       uint32
	client       *Client
	adapter      *adapter
	pd           *pd
	tq           *transport.QP // nil once the adapter was disabled
	send, recv   *cq
	srq          *srq
	xrcd         *xrcd      // of a target
	target       *xrcTarget // shared by the handles of a target
	context      uint64
	sendBlock    ring.Block
	recvBlock    ring.Block
	sendRing     transport.SendRing
	cm           *cmid // the CM id that moves its state
	groups       []netip.Addr
	joined       []ib.GID       // those of them that were joined on its behalf
	lease        *lease.Lease   // the direct path with its peer
	records      []*lease.Lease // all that it ever had
	delegable    bool           // came to the local path, may be delegated, and has not been used since
	recvRing     *ring.Recv     // nil with an SRQ
	recvGeometry ring.Geometry
	signalAll    bool
	row          int       // doorbells since its posts began to wait for more
	flows        []*flow   // of a raw packet QP
	spreads      []*spread // that have a raw packet QP
	choice       choice    // from which the marks of its route follow
	joining      *joining  // waits for a quiet moment to move to the local path
}

// CreateQP implements command.Commands.
func (c *Client) CreateQP(ctx context.Context, r command.CreateQP) (command.QueuePair, error) {
	if err := c.enter(ctx); err != nil {
		return command.QueuePair{}, err
	}
	defer c.host.unlock()
	if r.Type == command.XRCTarget {
		return c.createTarget(&r)
	}
	p, err := c.domain(r.PD)
	if err != nil {
		return command.QueuePair{}, err
	}
	a := p.adapter
	q := &qp{client: c, adapter: a, pd: p, context: r.Context, signalAll: r.Flags&command.QPSignalAll != 0}
	if err := q.check(&r); err != nil {
		return command.QueuePair{}, err
	}
	if err := c.room(a, "QPs", a.objects.QP, a.limits.QP); err != nil {
		return command.QueuePair{}, err
	}
	out, err := q.make(&r)
	if err != nil {
		c.freeBlock(q.sendBlock)
		c.freeBlock(q.recvBlock)
		return command.QueuePair{}, err
	}
	return out, nil
}

// check resolves the objects that r names and checks its sizes.
func (q *qp) check(r *command.CreateQP) (err error) {
	c := q.client
	if r.Type < command.RC || r.Type > command.RawPacket {
		return command.Errorf(command.Invalid,
			"Type is %d, want 1 (RC), 2 (UC), 3 (UD), 4 (XRC initiator), 5 (XRC target) or 6 (raw packet)", r.Type)
	}
	if r.XRCD != 0 {
		return command.Errorf(command.Invalid, "XRCD is %#x, want 0: only a target is in an XRC domain", uint32(r.XRCD))
	}
	if r.Type == command.RawPacket {
		if err := c.checkRaw(q.adapter); err != nil {
			return err
		}
	} else if err := c.barred(q.adapter); err != nil {
		return err
	}
	if r.Type == command.XRCInitiator {
		if err := q.checkXRC(r); err != nil {
			return err
		}
		return q.checkSizes(r)
	}
	if q.send, err = c.completion("SendCQ", r.SendCQ); err != nil {
		return err
	}
	if q.recv, err = c.completion("RecvCQ", r.RecvCQ); err != nil {
		return err
	}
	if q.send.adapter != q.adapter || q.recv.adapter != q.adapter {
		return command.Errorf(command.Invalid, "SendCQ, RecvCQ and PD are of different adapters")
	}
	if r.SRQ != 0 {
		if q.srq, err = c.shared(r.SRQ); err != nil {
			return err
		}
		if q.srq.pd.adapter != q.adapter {
			return command.Errorf(command.Invalid, "SRQ and PD are of different adapters")
		}
		if err := q.checkTags(r); err != nil {
			return err
		}
	}
	return q.checkSizes(r)
}

func (q *qp) checkSizes(r *command.CreateQP) error {
	l := &q.adapter.limits
	for _, f := range []struct {
		name           string
		v, least, most uint32
	}{
		{"SendDepth", r.SendDepth, 0, l.QPDepth}, {"RecvDepth", r.RecvDepth, 0, l.QPDepth},
		{"SendSGE", r.SendSGE, 0, l.SGE}, {"RecvSGE", r.RecvSGE, 0, l.SGE},
		{"Inline", r.Inline, 0, l.Inline}, {"Flags", r.Flags, 0, command.QPSignalAll | command.QPBlockSelfMulticast | command.FrameQPFlags},
	} {
		if err := within(f.name, f.v, f.least, f.most); err != nil {
			return err
		}
	}
	if r.Flags&command.QPBlockSelfMulticast != 0 && r.Type != command.UD && r.Type != command.RawPacket {
		return command.Errorf(command.Invalid, "Flags is %#x, want 0 or 1: only UD and raw packet queue pairs send to groups", r.Flags)
	}
	if r.Flags&command.FrameQPFlags != 0 && r.Type != command.RawPacket {
		return command.Errorf(command.Invalid, "Flags is %#x, want none of %#x: only raw packet queue pairs receive frames", r.Flags,
			command.FrameQPFlags)
	}
	return nil
}

// make allocates the rings and the engine's QP.
func (q *qp) make(r *command.CreateQP) (out command.QueuePair, err error) {
	c, a := q.client, q.adapter
	sg := ring.SendGeometry(int(max(r.SendDepth, 1)), int(max(r.SendSGE, 1)), int(r.Inline))
	if q.sendBlock, err = c.alloc(sg); err != nil {
		return out, err
	}
	if q.sendRing.Send, err = ring.OpenSend(q.sendBlock.Bytes, sg); err != nil {
		return out, command.Errorf(command.Internal, "%v", err)
	}
	if r.Type == command.UD {
		p := q.pd
		q.sendRing.Resolve = func(h uint32) *frame.Route { return c.resolveAH(h, p) }
	}
	var recv transport.RecvQueue
	var rg ring.Geometry
	recvCQ := transport.CQRef(0)
	if q.recv != nil {
		recvCQ = transport.CQRef(q.recv.ref)
	}
	switch {
	case q.srq != nil:
		recv = q.srq
	case r.Type != command.XRCInitiator:
		rg = ring.RecvGeometry(int(max(r.RecvDepth, 1)), int(max(r.RecvSGE, 1)))
		rr, b, err := c.openRecv(rg)
		if err != nil {
			return out, err
		}
		q.recvBlock, recv = b, rr
		q.recvRing, q.recvGeometry = rr, rg
	}
	q.tq, err = a.engine.CreateQP(c.host.now(), transport.QPConfig{
		Type: r.Type, PD: q.pd.number, SendCQ: transport.CQRef(q.send.ref), RecvCQ: recvCQ,
		Send: &q.sendRing, Recv: recv, SRQ: q.srq != nil, Tags: q.tagList(),
		SignalAll: r.Flags&command.QPSignalAll != 0, Context: r.Context,
		BlockSelf: r.Flags&command.QPBlockSelfMulticast != 0, Frames: r.Flags & command.FrameQPFlags, Program: &c.attention,
	})
	if err != nil {
		return out, engineError(err)
	}
	q.number = q.tq.Number()
	if q.handle, err = c.qps.AddLarge(q, requestsOf(uint32(sg.Entries))); err != nil {
		a.engine.Destroy(c.host.now(), q.tq)
		return out, err
	}
	if r.Type == command.RawPacket {
		a.joinRaw()
	}
	a.byNumber[q.number] = q
	a.objects.QP++
	q.pd.uses++
	q.send.uses++
	if q.recv != nil {
		q.recv.uses++
	}
	if q.srq != nil {
		q.srq.uses++
	}
	return command.QueuePair{
		Handle: q.handle, Number: q.number, SendDepth: uint32(sg.Entries), RecvDepth: uint32(rg.Entries),
		SendStride: uint32(sg.Stride), RecvStride: uint32(rg.Stride), Inline: r.Inline,
		Send: place(q.sendBlock), Recv: place(q.recvBlock),
	}, nil
}

// engineError converts an error of the engine for a new QP.
func engineError(err error) error {
	if errors.Is(err, transport.ErrNumbers) {
		return command.Errorf(command.Exhausted, "%v", err)
	}
	return asError(err)
}

// pair returns a QP of the client that accepts commands.
func (c *Client) pair(h command.Handle) (*qp, error) {
	q := c.qps.Get(h)
	if q == nil {
		return nil, notFound("QP", h)
	}
	if q.tq == nil {
		return nil, errRemoved()
	}
	return q, q.adapter.usable()
}

// ModifyQP implements command.Commands.
func (c *Client) ModifyQP(ctx context.Context, m command.ModifyQP) error {
	if m.Mask&command.MaskRoute != 0 {
		if err := c.resolve(ctx, func() *adapter { return c.ownerOf(m.QP) }, m.Route); err != nil {
			return err
		}
	}
	if err := c.enterHome(ctx, c.leaseOf(func() *qp { return c.qps.Get(m.QP) })); err != nil {
		return err
	}
	defer c.host.finish()
	q, err := c.pair(m.QP)
	if err != nil {
		return err
	}
	return q.first().modify(m)
}

// modify changes a QP and follows up on the change.
func (q *qp) modify(m command.ModifyQP) error {
	if err := q.change(&m); err != nil {
		return err
	}
	q.followUp(&m)
	return nil
}

func (q *qp) change(m *command.ModifyQP) (err error) {
	a := q.adapter
	var route *frame.Route
	if m.Mask&command.MaskMTU != 0 && m.MTU > a.mtu {
		return command.Errorf(command.Invalid, "MTU is %d, want at most %d, the active MTU of the port", m.MTU, a.mtu)
	}
	if m.Mask&command.MaskRoute != 0 {
		if route, err = a.route(m.Route); err != nil {
			return err
		}
	}
	before := q.tq.Route()
	if err := a.engine.Modify(a.host.now(), q.tq, *m, route); err != nil {
		route.Release()
		return modifyError(err)
	}
	if m.Mask&command.MaskRoute != 0 {
		q.choice = chosen(&m.Route)
	}
	if before != q.tq.Route() {
		a.part()
		before.Release()
	}
	return nil
}

// followUp does what a change makes possible or necessary.
func (q *qp) followUp(m *command.ModifyQP) {
	if m.Mask&command.MaskState != 0 {
		switch m.State {
		case command.RTR, command.RTS:
			q.adapter.host.join(q)
		case command.Reset:
			if q.lease != nil {
				q.lease.End()
			}
		}
	}
	if q.lease != nil {
		q.lease.Want(q.adapter.host.now())
	}
}

// modifyError converts an error of the engine to one of commands.
func modifyError(err error) error {
	var state *transport.StateError
	if errors.As(err, &state) {
		return &command.Error{Code: state.Code(), Detail: state.Error()}
	}
	return asError(err)
}

// QueryQP implements command.Commands.
func (c *Client) QueryQP(ctx context.Context, h command.Handle) (command.QPInfo, error) {
	if err := c.enter(ctx); err != nil {
		return command.QPInfo{}, err
	}
	defer c.host.unlock()
	q, err := c.pair(h)
	if err != nil {
		return command.QPInfo{}, err
	}
	info := q.adapter.engine.Query(q.tq)
	info.Attr.QP = h
	return info, nil
}

// fail moves a QP to the Error state and tells the program why.
func (q *qp) fail(why command.EventType) {
	if q.tq == nil || q.tq.State() == command.Err || q.tq.State() == command.Reset {
		return
	}
	q.error()
	if q.cm != nil {
		q.cm.lost(q.adapter.host.now())
		q.adapter.function.Unsettle()
	}
	q.tell(why)
}

// error moves a QP to the Error state, in which it flushes.
func (q *qp) error() {
	if q.tq == nil || q.tq.State() == command.Reset {
		return
	}
	if q.lease != nil {
		q.lease.Recall(q.adapter.host.now()) // what was posted is flushed when it is owned by the driver
	}
	_ = q.adapter.engine.Modify(q.adapter.host.now(), q.tq,
		command.ModifyQP{Mask: command.MaskState, State: command.Err}, nil) // legal in every state
}

// unmake destroys the engine's QP.
func (q *qp) unmake() {
	if q.tq == nil {
		return
	}
	a := q.adapter
	for _, g := range q.groups {
		a.leave(q, g)
	}
	for _, mgid := range q.joined {
		a.ib.Leave(a.host.now(), mgid)
	}
	q.groups, q.joined = nil, nil
	if q.lease != nil {
		q.lease.End() // it is owned by the driver
	}
	a.release() // q may be one of those whose posts wait
	for len(q.flows) > 0 {
		q.flows[0].end()
	}
	for len(q.spreads) > 0 {
		q.spreads[0].end()
	}
	route, framed := q.tq.Route(), q.tq.Type() == command.RawPacket
	if framed {
		a.raw.f.Leave(q.tq)
	}
	a.engine.Destroy(a.host.now(), q.tq)
	if framed {
		a.leaveRaw()
	}
	a.part()
	route.Release()
	q.tq = nil
	delete(a.byNumber, q.number)
	a.objects.QP--
	if q.target != nil {
		for _, o := range q.target.handles {
			if o.tq != nil {
				o.tq = nil
				a.objects.QP--
			}
		}
	}
}

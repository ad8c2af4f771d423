package device

import (
	"context"
	"net/netip"

	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// States of a CM id, for CMInfo.State.
const (
	cmIdle uint32 = iota
	cmBound
	cmListening
	cmConnecting
	cmRequested // the peer requests; Accept or Reject
	cmResponded // the peer accepted; Establish
	cmAccepted
	cmEstablished
	cmEnded
)

// cmid is a CM id of a program. On a wildcard address it stands for one id per adapter, until a route
// selects one of them.
type cmid struct {
	handle  command.Handle
	client  *Client
	space   command.PortSpace
	qpType  command.QPType // of its QPs, which OptionQPType tells; 0: any of the port space
	context uint64
	want    uint32 // adapter that it may use, or command.AnyAdapter
	state   uint32

	adapter  *adapter // nil until bound or routed
	id       cm.ID
	others   []placed // additional adapters of a wildcard id
	wildcard bool
	backlog  int // of a listener
	local    netip.AddrPort
	remote   netip.Addr     // InfiniBand: the address that was resolved
	removed  bool           // its adapter was removed
	listener command.Handle // of a connection request
	qp       *qp
	joined   []ib.GID // InfiniBand groups that it has joined
	channel  *channel // for its events; nil: the client's queue
	stop     func()   // cancels the address resolution in progress

	bind    cm.BindOptions
	traffic uint8 // traffic class of the connection's packets
	choice  choice
	ack     uint8 // local ACK timeout code, 0: from the path
}

// placed is an id on an adapter.
type placed struct {
	adapter *adapter
	id      cm.ID
}

// CMCreate implements command.Commands.
func (c *Client) CMCreate(ctx context.Context, r command.CMCreate) (command.Handle, error) {
	if err := c.enter(ctx); err != nil {
		return 0, err
	}
	defer c.host.unlock()
	return c.createCM(r)
}

func (c *Client) createCM(r command.CMCreate) (command.Handle, error) {
	if !r.Space.Valid() {
		return 0, command.Errorf(command.Invalid, "Space is %#x, want %s", uint32(r.Space), command.PortSpaces)
	}
	want := r.Adapter
	if r.Adapter != command.AnyAdapter {
		a, err := c.usable(r.Adapter)
		if err == nil {
			err = c.barred(a)
		}
		if err != nil {
			return 0, err
		}
		want = a.index
	}
	if uint64(c.live()) >= defaultLimits().ClientObjects {
		return 0, command.Errorf(command.Exhausted, "CM ids: the client has all objects that it may have")
	}
	return c.addCM(&cmid{space: r.Space, context: r.Context, want: want})
}

func (c *Client) addCM(o *cmid) (command.Handle, error) {
	o.client = c
	var err error
	o.handle, err = c.cms.Add(o)
	return o.handle, err
}

// connection returns a CM id of the client.
func (c *Client) connection(h command.Handle) (*cmid, error) {
	o := c.cms.Get(h)
	if o == nil {
		return nil, notFound("CM id", h)
	}
	if o.removed {
		return nil, errRemoved()
	}
	return o, nil
}

// CMAccept implements command.Commands.
func (c *Client) CMAccept(ctx context.Context, r command.CMAccept) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	defer c.host.finish()
	o, err := c.connection(r.ID)
	if err != nil {
		return err
	}
	if o.state != cmRequested {
		return command.Errorf(command.State, "the id has no request to accept")
	}
	q, err := c.connectable(o, r.QP)
	if err != nil {
		return err
	}
	if err := o.answers(q); err != nil {
		return err
	}
	if q != nil && q.adapter != o.adapter {
		return command.Errorf(command.Invalid, "QP and ID are of different adapters")
	}
	if err := checkParam(&r.Param, q == nil); err != nil {
		return err
	}
	return o.accept(&r.Param, q)
}

// likely returns the type of the id's QP as far as it is known before there is one.
func (o *cmid) likely() command.QPType {
	switch {
	case o.qpType != 0:
		return o.qpType
	case o.space == command.UDP:
		return command.UD
	}
	return command.RC
}

// suits reports whether a QP of a type may serve where another is expected. RC and UC may stand for each other: librdmacm
// says RC of connections whose programs then use UC.
func suits(typ, expected command.QPType) bool {
	return typ == expected || !typ.XRC() && !expected.XRC()
}

// answers checks the type of the QP that is to answer a request. q is nil if the program moves it itself.
func (o *cmid) answers(q *qp) error {
	attr, err := o.adapter.cm.Attributes(o.id)
	if err != nil || q == nil || suits(q.tq.Type(), attr.Type) {
		return cm.CommandError(err)
	}
	return command.Errorf(command.Invalid, "QP is of type %d, and the request for one of type %d", q.tq.Type(), attr.Type)
}

func (o *cmid) accept(p *command.ConnParam, q *qp) error {
	a := o.adapter
	n := cm.Accept{
		QPN: p.QPN, QKey: p.QKey, SRQ: p.SRQ != 0, NoFlowControl: p.FlowControl == 0,
		ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth, RNRRetry: p.RNRRetry,
		Private: p.Private[:p.PrivateLen], TrafficClass: o.traffic,
	}
	if q != nil {
		n.QPN, n.SRQ = q.number, q.srq != nil
		if err := q.toInit(p.QKey); err != nil {
			return err
		}
	}
	attr, err := a.cm.Accept(a.host.now(), o.id, n)
	if err != nil {
		return cm.CommandError(err)
	}
	o.state = cmAccepted
	if o.space == command.UDP {
		o.state = cmEstablished
	}
	o.take(q)
	if q == nil {
		return nil
	}
	o.choice = choice{sl: attr.SL, class: attr.TrafficClass, port: o.local.Port(), told: true}
	if o.traffic != 0 {
		o.choice = choice{sl: attr.SL, class: o.traffic}
	}
	o.settings(&attr)
	// Before sending the REP: the peer's first packet may arrive before its RTU.
	if err := q.toRTS(&attr); err != nil {
		_ = a.cm.Fail(a.host.now(), o.id)
		return err
	}
	return nil
}

// CMEstablish implements command.Commands.
func (c *Client) CMEstablish(ctx context.Context, h command.Handle) error {
	return c.cmDo(ctx, h, func(o *cmid) error {
		if o.adapter == nil {
			return command.Errorf(command.State, "the id is not connecting")
		}
		return cm.CommandError(o.adapter.cm.Establish(c.host.now(), o.id, nil))
	})
}

// CMReject implements command.Commands.
func (c *Client) CMReject(ctx context.Context, r command.CMReject) error {
	if r.PrivateLen > uint32(len(r.Private)) {
		return command.Errorf(command.Invalid, "PrivateLen is %d, want at most %d", r.PrivateLen, len(r.Private))
	}
	if r.Reason > 0xffff {
		return command.Errorf(command.Invalid, "Reason is %d, want a REJ code of 16 bits", r.Reason)
	}
	return c.cmDo(ctx, r.ID, func(o *cmid) error {
		if o.adapter == nil {
			return command.Errorf(command.State, "the id has nothing to reject")
		}
		err := o.adapter.cm.Reject(c.host.now(), o.id, mad.RejectReason(r.Reason), r.Private[:r.PrivateLen])
		if err == nil {
			o.state = cmEnded
			o.part()
		}
		return cm.CommandError(err)
	})
}

// CMDisconnect implements command.Commands. The QP goes to error and is flushed before the peer has
// answered.
func (c *Client) CMDisconnect(ctx context.Context, h command.Handle) error {
	return c.cmDo(ctx, h, func(o *cmid) error {
		if o.adapter == nil {
			return command.Errorf(command.State, "the id is not connected")
		}
		if err := o.adapter.cm.Disconnect(c.host.now(), o.id, nil); err != nil {
			return cm.CommandError(err)
		}
		if o.qp != nil {
			o.qp.error()
		}
		return nil
	})
}

func (c *Client) cmDo(ctx context.Context, h command.Handle, do func(*cmid) error) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	defer c.host.finish()
	o, err := c.connection(h)
	if err != nil {
		return err
	}
	return do(o)
}

// CMQuery implements command.Commands.
func (c *Client) CMQuery(ctx context.Context, h command.Handle) (command.CMInfo, error) {
	if err := c.enter(ctx); err != nil {
		return command.CMInfo{}, err
	}
	defer c.host.unlock()
	o, err := c.connection(h)
	if err != nil {
		return command.CMInfo{}, err
	}
	info := command.CMInfo{Local: command.EndpointFrom(o.local), Adapter: o.want, State: o.state}
	if o.adapter == nil {
		return info, nil
	}
	info.Adapter = o.client.indexOf(o.adapter)
	if local, remote, err := o.adapter.cm.Addresses(o.id); err == nil {
		info.Local, info.Remote = command.EndpointFrom(local), command.EndpointFrom(remote)
	}
	if attr, err := o.adapter.cm.Attributes(o.id); err == nil {
		info.QPN, info.RemoteQPN, info.SrcPort = attr.LocalQPN, attr.RemoteQPN, uint32(attr.SrcPort)
	}
	return info, nil
}

// CMAttributes implements command.Commands.
func (c *Client) CMAttributes(ctx context.Context, h command.Handle, state command.QPState) (command.ModifyQP, error) {
	if err := c.enter(ctx); err != nil {
		return command.ModifyQP{}, err
	}
	defer c.host.unlock()
	o, err := c.connection(h)
	if err != nil {
		return command.ModifyQP{}, err
	}
	if o.adapter == nil {
		return command.ModifyQP{}, command.Errorf(command.State, "the id is on no adapter yet")
	}
	attr, err := o.adapter.cm.Attributes(o.id)
	if err != nil {
		return command.ModifyQP{}, cm.CommandError(err)
	}
	o.settings(&attr)
	if attr.Type == 0 { // neither asks for a connection nor is asked
		attr.Type = o.likely()
	}
	m, ok := o.adapter.attributes(&attr, attr.Type, state)
	if !ok {
		return m, command.Errorf(command.Invalid, "state is %d, want 1 (Init), 2 (RTR) or 3 (RTS)", state)
	}
	return m, nil
}

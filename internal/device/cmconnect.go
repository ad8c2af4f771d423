package device

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/eth"
)

// CMConnect implements command.Commands.
func (c *Client) CMConnect(ctx context.Context, r command.CMConnect) (command.Handle, error) {
	if err := c.enter(ctx); err != nil {
		return 0, err
	}
	defer c.host.finish()
	if r.ID != 0 {
		return r.ID, c.connect(&r)
	}
	h, err := c.createCM(command.CMCreate{Adapter: r.Adapter, Space: r.Space, Context: r.Context})
	if err != nil {
		return 0, err
	}
	r.ID = h
	if err := c.connect(&r); err != nil {
		_ = c.destroyCM(h) // it was just created
		return 0, err
	}
	return h, nil
}

func (c *Client) connect(r *command.CMConnect) error {
	o, err := c.connection(r.ID)
	if err != nil {
		return err
	}
	if o.state != cmIdle && o.state != cmBound || o.stop != nil {
		return command.Errorf(command.State, "the id resolves, listens or connects already")
	}
	q, err := c.connectable(o, r.QP)
	if err != nil {
		return err
	}
	if err := checkParam(&r.Param, q == nil && o.space != command.UDP); err != nil {
		return err
	}
	remote := netip.AddrPortFrom(r.Remote.Addr.IP(), r.Remote.Port)
	if err := o.choose(q, remote.Addr()); err != nil {
		return err
	}
	return o.connect(r, q, remote)
}

// candidates returns the adapters that may be chosen for an outgoing connection: those with an address of
// the destination's family.
func (o *cmid) candidates(q *qp, remote netip.Addr) (may []*adapter) {
	for _, b := range o.client.host.adapters {
		if b.enabled && o.mayBeOn(b) && b.source(remote).Is4() == remote.Is4() && (q == nil || q.adapter == b) {
			may = append(may, b)
		}
	}
	return may
}

// outgoing returns the adapter that knows an address or has it, or the one that the system's routes choose for
// it, or the first of the address's family: an Ethernet one, since InfiniBand ports know whom they reach. Linux
// routes a local address, too, through the device that has it.
func (o *cmid) outgoing(q *qp, remote netip.Addr) *adapter {
	may := o.candidates(q, remote)
	if len(may) > 1 {
		for _, b := range may {
			if b.ib != nil && b.ib.Knows(remote) {
				return b
			}
		}
		if b := owner(may, remote); b != nil {
			return b
		}
		if b := owner(may, systemSource(remote)); b != nil {
			return b
		}
		for _, b := range may {
			if b.ib == nil {
				return b
			}
		}
	}
	if len(may) == 0 {
		return nil
	}
	return may[0]
}

// owner returns the adapter of a list that has an address, nil if none has.
func owner(list []*adapter, addr netip.Addr) *adapter {
	for _, b := range list {
		if b.owns(addr) {
			return b
		}
	}
	return nil
}

// systemSource returns the system's source address towards another; the zero Addr if there is no route.
// Connecting a datagram socket sends nothing.
func systemSource(remote netip.Addr) netip.Addr {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(remote, eth.PortRoCEv2)))
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
}

// choose selects the adapter for an outgoing connection: the QP's, the one that the id is bound to, or the
// system's choice.
func (o *cmid) choose(q *qp, remote netip.Addr) error {
	if !remote.IsValid() || remote.IsUnspecified() {
		return command.Errorf(command.Invalid, "Remote is %v, want an address", remote)
	}
	a := o.adapter
	if a == nil || o.wildcard {
		a = o.outgoing(q, remote)
	}
	switch {
	case a == nil:
		would := func(b *adapter) bool { return b.source(remote).Is4() == remote.Is4() }
		if err := o.barredAll(would); err != nil {
			return err
		}
		return command.Errorf(command.NetworkUnreachable, "no adapter that the id may use has an address of the family of %v", remote)
	case q != nil && q.adapter != a:
		return command.Errorf(command.Invalid, "QP and ID are of different adapters")
	}
	if o.adapter == nil {
		return o.place(a, netip.AddrPort{})
	}
	o.settle(a)
	return nil
}

func (o *cmid) connect(r *command.CMConnect, q *qp, remote netip.AddrPort) error {
	a, now := o.adapter, o.client.host.now()
	if !a.reaches(remote.Addr()) {
		return command.Errorf(command.HostUnreachable, "adapter %q is set to the local path, and %v is not of this host", a.name,
			remote.Addr())
	}
	if err := a.lit(); err != nil {
		return err
	}
	local := a.source(remote.Addr())
	if o.local.IsValid() && !o.local.Addr().IsUnspecified() {
		local = o.local.Addr()
	}
	if err := a.agrees(remote.Addr()); err != nil {
		return err
	}
	near := a.sameHostOf(local, remote.Addr()) != nil
	if a.ib == nil && !near && !a.macBased() { // the system knows at once if there is no route
		if err := a.routable(a.gids.Index(local), remote.Addr()); err != nil {
			return err
		}
	}
	p := &r.Param
	n := cm.Connect{
		Remote: remote, Local: local, QPN: p.QPN, SRQ: p.SRQ != 0, NoFlowControl: p.FlowControl == 0,
		ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth,
		RetryCount: p.RetryCount, RNRRetry: p.RNRRetry, Private: p.Private[:p.PrivateLen],
		Timeout: time.Duration(r.Timeout) * time.Millisecond, TrafficClass: o.traffic, AckTimeout: o.ack,
	}
	o.choice = choice{class: o.traffic}
	if o.traffic == 0 {
		o.choice.port = remote.Port()
		if p := a.policy(remote.Port()); p != nil {
			n.SL, n.TrafficClass = uint8(max(p.Priority, 0)), uint8(max(p.DSCP, 0))<<2
		}
	}
	n.RulePort = o.choice.port
	if n.Type = o.likely(); q != nil {
		n.QPN, n.SRQ, n.Type = q.number, q.srq != nil, q.tq.Type()
	}
	if n.Type == command.XRCTarget {
		return command.Errorf(command.Invalid, "QP is an XRC target: those accept connections, and request none")
	}
	if q != nil {
		if err := q.toInit(p.QKey); err != nil {
			return err
		}
	}
	if a.ib != nil {
		return o.connectIB(now, n, q)
	}
	if a.macBased() {
		return o.connectByMAC(now, n, q)
	}
	if !near {
		a.port.linkErrors(now) // earlier errors must not affect this attempt
	}
	if err := a.cm.Connect(now, o.id, n); err != nil {
		return cm.CommandError(err)
	}
	o.state = cmConnecting
	o.take(q)
	return nil
}

// take makes the id responsible for moving a QP through its states.
func (o *cmid) take(q *qp) {
	if q != nil {
		o.qp, q.cm = q, o
	}
}

// connectable returns the QP that an id is to move, nil if h is 0.
func (c *Client) connectable(o *cmid, h command.Handle) (*qp, error) {
	if h == 0 {
		return nil, nil
	}
	q, err := c.pair(h)
	if err != nil {
		return nil, err
	}
	if q = q.first(); q.cm != nil && q.cm != o {
		return nil, command.Errorf(command.State, "the QP belongs to another connection")
	}
	typ := q.tq.Type()
	if o.space == command.UDP != (typ == command.UD) || typ.XRC() && o.space != command.IB {
		return nil, command.Errorf(command.Invalid,
			"QP is of type %d: the TCP port space connects RC and UC, the IB port space also XRC, and the UDP port space UD", typ)
	}
	if o.qpType != 0 && !suits(typ, o.qpType) {
		return nil, command.Errorf(command.Invalid, "QP is of type %d, and the id for those of type %d", typ, o.qpType)
	}
	if s := q.tq.State(); s != command.Reset && s != command.Init && o.space != command.UDP {
		return nil, command.Errorf(command.State, "the QP is in state %d, want Reset or Init", s)
	}
	return q, nil
}

func checkParam(p *command.ConnParam, needQPN bool) error {
	for _, f := range [...]struct {
		name string
		v    uint8
		most uint32
	}{
		{"Param.ResponderResources", p.ResponderResources, transport.MaxReadAtomic}, {"Param.InitiatorDepth", p.InitiatorDepth, transport.MaxReadAtomic},
		{"Param.FlowControl", p.FlowControl, 1}, {"Param.RetryCount", p.RetryCount, 7}, {"Param.RNRRetry", p.RNRRetry, 7},
		{"Param.PrivateLen", p.PrivateLen, uint32(len(p.Private))},
	} {
		if err := within(f.name, uint32(f.v), 0, f.most); err != nil {
			return err
		}
	}
	if needQPN {
		return within("Param.QPN", p.QPN, 2, 0xfffffe)
	}
	return nil
}

package device

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
	"time"

	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
)

var _ command.Extended = (*Client)(nil)

// CMResolveAddr implements command.Extended. The event comes when the next hop is known, at once if that is
// this host.
func (c *Client) CMResolveAddr(ctx context.Context, r command.CMResolveAddr) error {
	return c.cmDo(ctx, r.ID, func(o *cmid) error {
		if o.state != cmIdle && o.state != cmBound || o.stop != nil {
			return command.Errorf(command.State, "the id resolves, listens or connects already")
		}
		if ports := o.undecided(r.Local, r.Remote.Addr.IP()); len(ports) > 0 {
			o.inquire(c.host.now(), ports, r)
			return nil
		}
		o.resolveAddr(&r)
		return nil
	})
}

// resolveAddr binds the id and asks for the next hop. The program is told when it is known.
func (o *cmid) resolveAddr(r *command.CMResolveAddr) {
	err := o.resolve(r.Local, r.Remote)
	if err == nil && o.adapter.ib != nil {
		o.findIB(o.client.host.now(), r.Remote.Addr.IP(), r.Timeout)
		return
	}
	if err == nil && o.await(r.Remote.Addr.IP(), time.Duration(r.Timeout)*time.Millisecond) {
		return
	}
	o.resolved(err)
}

// resolved reports the end of an address resolution to the program.
func (o *cmid) resolved(err error) {
	e := command.Event{Type: command.EventAddressResolved, Object: o.handle, Context: o.context}
	if err != nil {
		e.Type, e.Status = command.EventAddressError, uint32(codeOf(err))
	} else {
		e.Adapter, e.Remote = o.adapter.index, command.EndpointFrom(o.local)
	}
	o.client.event(e)
}

// await resolves an address on a goroutine beside the loop; false: the answer is known already.
func (o *cmid) await(remote netip.Addr, timeout time.Duration) bool {
	h := o.client.host
	for _, a := range h.adapters {
		if a.subnet() == o.adapter.subnet() && a.owns(remote) {
			return false
		}
	}
	return o.lookFor(remote, timeout, o.resolved)
}

// unanswered converts an error of a resolver to one of commands.
func unanswered(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ETIMEDOUT):
		return &command.Error{Code: command.TimedOut, Detail: err.Error()}
	}
	return &command.Error{Code: unreachableCode(err), Detail: err.Error()}
}

// resolve binds the id to the adapter, and the address, by which the destination is reached.
func (o *cmid) resolve(from, to command.Endpoint) error {
	remote := to.Addr.IP()
	if local := from.Addr.IP(); o.state == cmIdle && !local.IsUnspecified() {
		if err := o.bindTo(netip.AddrPortFrom(local, from.Port)); err != nil {
			return err
		}
		o.state = cmBound
	}
	if err := o.choose(nil, remote); err != nil {
		return err
	}
	a := o.adapter
	if !a.reaches(remote) {
		return command.Errorf(command.HostUnreachable, "adapter %q is set to the local path, and %v is not of this host", a.name, remote)
	}
	if err := a.lit(); err != nil {
		return err
	}
	local := a.source(remote)
	if o.state == cmIdle {
		bound, err := a.cm.Bind(o.id, netip.AddrPortFrom(local, from.Port))
		if err != nil {
			return cm.CommandError(err)
		}
		o.local, o.state = bound, cmBound
	} else if o.local.Addr().IsUnspecified() {
		o.local = netip.AddrPortFrom(local, o.local.Port())
	}
	if a.ib != nil {
		o.remote = remote
		return nil // which port has the address is yet to be asked
	}
	if err := a.agrees(remote); err != nil {
		return err
	}
	if a.macBased() {
		_, _, err := a.gidOf(o.local.Addr(), remote)
		return err
	}
	return a.routable(a.gids.Index(o.local.Addr()), remote)
}

// CMResolveRoute implements command.Extended. On Ethernet the route is the system's, and was found with
// the address; on InfiniBand the subnet administration knows it.
func (c *Client) CMResolveRoute(ctx context.Context, r command.CMResolveRoute) error {
	return c.cmDo(ctx, r.ID, func(o *cmid) error {
		if o.adapter == nil || o.state != cmBound || o.stop != nil {
			return command.Errorf(command.State, "the address of the id is not resolved")
		}
		if o.adapter.ib != nil {
			return o.findPath(c.host.now(), r.Timeout)
		}
		c.event(command.Event{Type: command.EventRouteResolved, Object: o.handle, Context: o.context, Adapter: o.adapter.index})
		return nil
	})
}

// CMJoin implements command.Extended.
func (c *Client) CMJoin(ctx context.Context, r command.CMJoin) error {
	return c.group(ctx, r.ID, r.QP, r.Group, func(o *cmid, q *qp, group netip.Addr) error {
		if r.Flags&^command.JoinSendOnly != 0 {
			return command.Errorf(command.Invalid, "Flags is %#x, want 0 or 1 (send only)", r.Flags)
		}
		if o.adapter.ib != nil {
			o.joinGroupIB(&r, q)
			return nil
		}
		if q != nil && r.Flags&command.JoinSendOnly == 0 {
			if err := q.adapter.attach(q, group); err != nil {
				return err
			}
		}
		e := command.Event{
			Type: command.EventMulticastJoined, Object: o.handle, Context: o.context, Adapter: o.adapter.index,
			Remote: command.Endpoint{Addr: r.Group}, Param: command.ConnParam{QPN: uint32(ib.QPMulticast), QKey: ib.QKeyRDMAUDP},
		}
		c.event(e)
		return nil
	})
}

// CMLeave implements command.Extended.
func (c *Client) CMLeave(ctx context.Context, r command.CMLeave) error {
	return c.group(ctx, r.ID, r.QP, r.Group, func(o *cmid, q *qp, group netip.Addr) error {
		if o.adapter.ib != nil {
			return o.leaveGroupIB(q, group)
		}
		if q == nil {
			return nil
		}
		return q.adapter.detach(q, group)
	})
}

// group checks the arguments of a command about a multicast group.
func (c *Client) group(ctx context.Context, id, pair command.Handle, group command.Addr, do func(*cmid, *qp, netip.Addr) error) error {
	return c.cmDo(ctx, id, func(o *cmid) error {
		ip := group.IP()
		if !ip.IsMulticast() {
			return command.Errorf(command.Invalid, "Group is %v, want a multicast address", ip)
		}
		if o.space != command.UDP || o.adapter == nil {
			return command.Errorf(command.State, "the id is of no adapter, or not of the UDP port space")
		}
		if pair == 0 {
			return do(o, nil, ip)
		}
		q, err := c.pair(pair)
		if err != nil {
			return err
		}
		if q.tq.Type() != command.UD {
			return command.Errorf(command.Invalid, "QP: only UD queue pairs attach to multicast groups")
		}
		return do(o, q, ip)
	})
}

// CMOption implements command.Extended.
func (c *Client) CMOption(ctx context.Context, r command.CMOption) error {
	return c.cmDo(ctx, r.ID, func(o *cmid) error { return o.set(r.Option, r.Value) })
}

func (o *cmid) set(option command.CMOptionKind, value uint32) error {
	most := map[command.CMOptionKind]uint32{
		command.OptionTOS: 255, command.OptionAckTimeout: 31, command.OptionReuse: 1, command.OptionIPv6Only: 1,
		command.OptionQPType: uint32(command.XRCTarget),
	}
	if _, ok := most[option]; !ok {
		return command.Errorf(command.Invalid, "Option is %d, want 1 to 5", option)
	}
	if err := within("Value", value, 0, most[option]); err != nil {
		return err
	}
	unbound := o.state == cmIdle || o.state == cmBound
	switch {
	case option == command.OptionTOS && (unbound || o.state == cmRequested):
		o.traffic = uint8(value)
	case option == command.OptionAckTimeout && (unbound || o.state == cmRequested):
		o.ack = uint8(value)
	case option == command.OptionReuse && unbound:
		o.bind.Reuse = value == 1
		return o.setBind()
	case option == command.OptionIPv6Only && unbound:
		o.bind.IPv6Only = value == 1
		return o.setBind()
	case option == command.OptionQPType && unbound:
		return o.setType(command.QPType(value))
	default:
		return command.Errorf(command.State, "the id listens or connects already")
	}
	return nil
}

func (o *cmid) setType(t command.QPType) error {
	switch {
	case o.space != command.IB:
		return command.Errorf(command.Invalid, "Option is %d, which ids of the IB port space have", command.OptionQPType)
	case t == 0 || t == command.UD:
		return command.Errorf(command.Invalid, "Value is %d, want 1 (RC), 2 (UC), 4 (XRC initiator) or 5 (XRC target)", t)
	}
	o.qpType = t
	return nil
}

// setBind passes a bound id's options on to the CM.
func (o *cmid) setBind() error {
	if o.adapter == nil {
		return nil
	}
	for _, p := range append([]placed{{o.adapter, o.id}}, o.others...) {
		if err := p.adapter.cm.SetBind(p.id, o.bind); err != nil {
			return cm.CommandError(err)
		}
	}
	return nil
}

// settings overrides values of a request with the id's options.
func (o *cmid) settings(t *cm.Attributes) {
	if o.traffic != 0 {
		t.TrafficClass = o.traffic
	} else if p := o.adapter.policy(o.local.Port()); p != nil { // of who accepts; who asks has named its peer's in its request
		t.SL, t.TrafficClass = uint8(max(p.Priority, 0)), uint8(max(p.DSCP, 0))<<2
	}
	if o.ack != 0 {
		t.AckTimeout = o.ack
	}
}

// CMNotify implements command.Extended: a QP that received before the RTU arrived counts as connected. For
// QPs that the driver moves, the driver notices the first message itself.
func (c *Client) CMNotify(ctx context.Context, r command.CMNotify) error {
	return c.cmDo(ctx, r.ID, func(o *cmid) error {
		if r.Event != command.EventCommunicationEstablished {
			return command.Errorf(command.Invalid, "Event is %d, want %d (communication established)", r.Event,
				command.EventCommunicationEstablished)
		}
		if o.state == cmEstablished {
			return nil
		}
		if o.state != cmAccepted {
			return command.Errorf(command.State, "the id was not accepted")
		}
		return cm.CommandError(o.adapter.cm.Established(c.host.now(), o.id))
	})
}

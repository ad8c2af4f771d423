package device

import (
	"context"
	"net/netip"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
)

var _ command.Extended = (*Client)(nil)

// CMResolveAddr implements command.Extended.
func (c *Client) CMResolveAddr(ctx context.Context, r command.CMResolveAddr) error {
	return c.cmDo(ctx, r.ID, func(o *cmid) error {
		if o.state != cmIdle && o.state != cmBound {
			return command.Errorf(command.State, "the id listens or connects already")
		}
		e := command.Event{Type: command.EventAddressResolved, Object: o.handle, Context: o.context}
		if err := o.resolve(r.Local, r.Remote); err != nil {
			e.Type, e.Status = command.EventAddressError, uint32(codeOf(err))
		} else {
			e.Adapter, e.Remote = o.adapter.index, endpoint(o.local)
		}
		c.event(e)
		return nil
	})
}

// resolve binds the id on the adapter, and to the address, by which the destination
// is reached.
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
	local := a.source(remote)
	if o.state == cmIdle {
		bound, err := a.cm.Bind(o.id, netip.AddrPortFrom(local, from.Port))
		if err != nil {
			return cmError(err)
		}
		o.local, o.state = bound, cmBound
	} else if o.local.Addr().IsUnspecified() {
		o.local = netip.AddrPortFrom(local, o.local.Port())
	}
	_, err := a.route(command.AddressVector{Addr: command.AddrFrom(remote), SrcIndex: a.gids.index(o.local.Addr())})
	return err
}

// CMResolveRoute implements command.Extended: over Ethernet the way is the system's,
// and was asked for with the address.
func (c *Client) CMResolveRoute(ctx context.Context, r command.CMResolveRoute) error {
	return c.cmDo(ctx, r.ID, func(o *cmid) error {
		if o.adapter == nil || o.state != cmBound {
			return command.Errorf(command.State, "the address of the id is not resolved")
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
		if q != nil && r.Flags&command.JoinSendOnly == 0 {
			if err := q.adapter.attach(q, group); err != nil {
				return err
			}
		}
		e := command.Event{
			Type: command.EventMulticastJoined, Object: o.handle, Context: o.context, Adapter: o.adapter.index,
			Remote: command.Endpoint{Addr: r.Group}, Param: command.ConnParam{QPN: uint32(ib.QPMulticast), QKey: datagramQKey},
		}
		c.event(e)
		return nil
	})
}

// CMLeave implements command.Extended.
func (c *Client) CMLeave(ctx context.Context, r command.CMLeave) error {
	return c.group(ctx, r.ID, r.QP, r.Group, func(_ *cmid, q *qp, group netip.Addr) error {
		if q == nil {
			return nil
		}
		return q.adapter.detach(q, group)
	})
}

// group checks what a command about a multicast group names.
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
	return c.cmDo(ctx, r.ID, func(o *cmid) error {
		if o.state != cmIdle && o.state != cmBound {
			return command.Errorf(command.State, "the id listens or connects already")
		}
		switch r.Option {
		case command.OptionTOS:
			if err := within("Value", r.Value, 0, 255); err != nil {
				return err
			}
			o.traffic = uint8(r.Value)
		case command.OptionAckTimeout:
			if err := within("Value", r.Value, 0, 31); err != nil {
				return err
			}
			o.ack = uint8(r.Value)
		case command.OptionReuse, command.OptionIPv6Only:
			// Ports of connections that linger can be bound as it is, and :: stands for all
			// addresses of adapters, which have one family each.
			return within("Value", r.Value, 0, 1)
		default:
			return command.Errorf(command.Invalid, "Option is %d, want 1 to 4", r.Option)
		}
		return nil
	})
}

// CMNotify implements command.Extended: a QP that received before the RTU came counts
// as connected.
func (c *Client) CMNotify(ctx context.Context, r command.CMNotify) error {
	return c.cmDo(ctx, r.ID, func(o *cmid) error {
		if r.Event != command.EventCommunicationEstablished {
			return command.Errorf(command.Invalid, "Event is %d, want %d (communication established)", r.Event, command.EventCommunicationEstablished)
		}
		if o.state == cmEstablished {
			return nil
		}
		if o.state != cmAccepted {
			return command.Errorf(command.State, "the id was not accepted")
		}
		return nil // the driver sees the first message itself
	})
}

package device

import (
	"context"
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/function/rdma/ibport"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// AttachMulticast implements command.Commands.
func (c *Client) AttachMulticast(ctx context.Context, h command.Handle, group command.Addr) error {
	mgid, err := c.joinFirst(ctx, h, group.IP())
	if err != nil {
		return err
	}
	return c.multicast(ctx, h, group, func(a *adapter, q *qp, ip netip.Addr) error {
		err := a.attach(q, ip)
		switch {
		case mgid.IsZero():
		case err != nil:
			a.ib.Leave(a.host.now(), mgid)
		default:
			q.joined = append(q.joined, mgid)
		}
		return err
	})
}

// DetachMulticast implements command.Commands.
func (c *Client) DetachMulticast(ctx context.Context, h command.Handle, group command.Addr) error {
	return c.multicast(ctx, h, group, (*adapter).detach)
}

func (c *Client) multicast(ctx context.Context, h command.Handle, group command.Addr, do func(*adapter, *qp, netip.Addr) error) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	defer c.host.unlock()
	q, err := c.pair(h)
	if err != nil {
		return err
	}
	ip := group.IP()
	if !ip.IsMulticast() {
		return command.Errorf(command.Invalid, "group is %v, want a multicast address", ip)
	}
	if q.tq.Type() != command.UD {
		return command.Errorf(command.Invalid, "QP: only UD queue pairs attach to multicast groups")
	}
	return do(q.adapter, q, ip)
}

// groupOf returns the address by which packets name a group: on InfiniBand its MGID. In RoCE v1 packets have GIDs, and an IPv4
// group is ff0e::ffff:a.b.c.d, as it is to Linux (rdma_cm, cma_iboe_set_mgid) and thus to its peers.
func (a *adapter) groupOf(group netip.Addr) netip.Addr {
	switch {
	case a.ib != nil:
		return netip.AddrFrom16(a.ib.MGID(group))
	case a.macBased() && group.Is4():
		mgid := group.As16()
		mgid[0], mgid[1] = 0xff, 0x0e
		return netip.AddrFrom16(mgid)
	}
	return group
}

// attach makes a UD QP receive what is sent to a group.
func (a *adapter) attach(q *qp, group netip.Addr) error {
	group = a.groupOf(group)
	if slices.Contains(q.groups, group) {
		return nil
	}
	if err := a.engine.AttachMulticast(q.tq, group); err != nil {
		return asError(err)
	}
	if a.groups[group] == 0 {
		if err := a.joinGroup(group); err != nil {
			_ = a.engine.DetachMulticast(q.tq, group)
			return err
		}
	}
	if a.groups[group]++; a.groups[group] == 1 {
		a.subscribe()
	}
	q.groups = append(q.groups, group)
	return nil
}

// joinGroup joins a group on the network (IGMP, MLD).
func (a *adapter) joinGroup(group netip.Addr) error {
	if a.ib != nil {
		return nil // whoever attaches joins at the subnet administration, by the CM (IBA 10.5.2)
	}
	return a.links.Join(group)
}

func (a *adapter) detach(q *qp, group netip.Addr) error {
	group = a.groupOf(group)
	if !slices.Contains(q.groups, group) {
		return command.Errorf(command.NotFound, "the QP is not attached to %v", group)
	}
	a.leave(q, group)
	if i := slices.Index(q.joined, ib.GID(group.As16())); i >= 0 {
		a.ib.Leave(a.host.now(), q.joined[i])
		q.joined = slices.Delete(q.joined, i, i+1)
	}
	q.groups = slices.DeleteFunc(q.groups, func(g netip.Addr) bool { return g == group })
	return nil
}

func (a *adapter) leave(q *qp, group netip.Addr) {
	_ = a.engine.DetachMulticast(q.tq, group)
	if a.groups[group]--; a.groups[group] > 0 {
		return
	}
	delete(a.groups, group)
	a.subscribe()
	if a.ib != nil {
		return
	}
	a.links.Leave(group)
}

// joinFirst makes the port a member of the group for an IPv4 address before a QP is attached to it: such a
// group belongs to the RDMA CM. Groups given as GIDs are joined by whoever attaches to them (IBA 10.5.2).
func (c *Client) joinFirst(ctx context.Context, h command.Handle, group netip.Addr) (mgid ib.GID, err error) {
	if !c.host.onFabric.Load() || !group.Is4() {
		return mgid, nil
	}
	err = c.answered(ctx, func() *adapter { return c.ownerOf(h) }, func(a *adapter, now clock.Time, done func(error)) {
		mgid = a.ib.MGID(group)
		if q := c.qps.Get(h); q.attached(mgid) {
			mgid = ib.GID{}
			done(nil)
			return
		}
		a.ib.Join(now, mgid, mad.JoinFull, func(_ clock.Time, _ *mad.MCMemberRecord, err error) {
			if err != nil {
				err = ibport.Error(group, err)
			}
			done(err)
		})
	})
	return mgid, err
}

// attached reports whether any QP receives what is sent to a group.
func (a *adapter) attached(group netip.Addr) bool { return a.groups[group] > 0 }

// attached reports whether the QP receives what is sent to a group.
func (q *qp) attached(mgid ib.GID) bool { return slices.Contains(q.groups, netip.AddrFrom16(mgid)) }

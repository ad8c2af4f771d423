package device

import (
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
	"github.com/softvpi/softvpi/internal/function/rdma/ibport"
	"github.com/softvpi/softvpi/wire/ib"
)

// newIBPort creates the InfiniBand port of an adapter from its complete configuration.
func (a *adapter) newIBPort(transaction uint64, owner *adapter) (*ibport.Port, error) {
	cfg := &a.cfg
	c := ibport.Config{
		Link: cfg.Link.Capabilities().Fabric, Addresses: append([]netip.Addr{cfg.Addr}, cfg.Addrs...),
		Timeout: cfg.SATimeout, Retries: cfg.SARetries, Transaction: transaction, Near: a.near, Log: a.host.log.With("adapter", a.name),
	}
	if a.virtual() {
		n, err := owner.port.freeVirtual(a.name, len(c.Link.Port().GUIDs))
		if err != nil {
			return nil, err
		}
		a.number = n
		share := a.shareIB()
		if c.Share = &share; share.Virtual == 0 {
			c.Aliases = owner.ib.Ask
		}
	}
	p, err := ibport.New(c)
	if err != nil {
		return nil, command.Errorf(command.Invalid, "%v", err)
	}
	return p, nil
}

// completeIB checks the configuration of an InfiniBand port and fills in the defaults.
func (c *AdapterConfig) completeIB() error {
	l := c.Link.Capabilities().Fabric
	switch {
	case l == nil:
		return command.Errorf(command.Unsupported, "Link: says that it is InfiniBand's, and tells nothing of its port")
	case c.RoCE != 0 && c.RoCE != InfiniBand:
		return command.Errorf(command.Invalid, "RoCE is %d: the port is InfiniBand's, want 0 or 4", c.RoCE)
	case c.RoceMaxFrameSize != 0 || c.MTU != 0:
		return command.Errorf(command.Invalid, "RoceMaxFrameSize and MTU are Ethernet's; the subnet manager sets the MTU of an InfiniBand port")
	case c.SATimeout < 0 || c.SATimeout > time.Minute:
		return command.Errorf(command.Invalid, "SATimeout is %v, want up to 1m", c.SATimeout)
	case c.SARetries < 0 || c.SARetries > 64:
		return command.Errorf(command.Invalid, "SARetries is %d, want 1 to 64", c.SARetries)
	}
	c.RoCE = InfiniBand
	if !c.Addr.IsValid() {
		p := l.Port()
		if len(p.GUIDs) == 0 || p.GUIDs[0] == 0 {
			return command.Errorf(command.Invalid, "Link: its port has no GUID")
		}
		c.Addr = gid.Of(gid.LinkLocal, p.GUIDs[0])
	}
	return nil
}

// owns reports whether the adapter has an address.
func (a *adapter) owns(ip netip.Addr) bool {
	if a.gids.Has(ip) || a.named(ip) {
		return true
	}
	return a.ib != nil && a.ib.Owns(ip)
}

// receives reports whether packets that another adapter of this host sends along a route arrive here:
// InfiniBand packets are routed by LIDs, which are only valid in one fabric.
func (a *adapter) receives(from *adapter, r *frame.Route) bool {
	if (a.ib == nil) != (from.ib == nil) {
		return false
	}
	if a.ib == nil {
		return a.cfg.RoCE == from.cfg.RoCE && a.cfg.UDPPort == r.DstPort && a.gids.Has(r.Dst) && a.within(from)
	}
	if r.IB.Global && len(a.port.functions) > 1 && !a.ib.HasGID(r.IB.DGID.Addr()) {
		return false // another function's of the port
	}
	return r.IB.DLID != 0 && a.ib.Has(r.IB.DLID) && a.ib.SameFabric(from.ib)
}

// followPort does what is due at an InfiniBand port: it handles changes made by the subnet manager, and
// requests to the fabric. It reports whether there was anything.
func (a *adapter) followPort(now clock.Time) bool {
	worked := false
	if a.ib.Changed() {
		a.portChanged(now)
		worked = true
	}
	if a.ib.Advance(now) {
		worked = true
	}
	for n := a.engine.Violations(a.refused[:]); n > 0; n = a.engine.Violations(a.refused[:]) {
		for i := range a.refused[:n] {
			a.ib.Refuse(a.refused[i])
		}
	}
	return worked
}

// portChanged adapts everything to a change of the port, and tells the programs (IBA 11.6.3).
func (a *adapter) portChanged(now clock.Time) {
	p := a.ib
	is := p.Take()
	a.links.Follow()
	a.setMTU(int(a.linkMTU)) // cannot fail: there is always an MTU
	if m, ok := ib.MTUFor(int(a.mtu)); ok {
		a.cm.SetMTU(m)
	}
	if is.Routes {
		a.function.GSI.Forget()
	}
	if is.PKeys {
		a.engine.SetPKeys(p.Keys())
		a.cm.SetPKeys(p.Keys())
	}
	for _, c := range []struct {
		is  bool
		typ command.EventType
	}{
		{a.gids.SetPort(p.Settings()), command.EventGIDChange}, {is.PKeys, command.EventPKeyChange}, {is.LID, command.EventLIDChange},
		{is.Manager, command.EventSMChange}, {is.Reregister, command.EventClientReregister},
	} {
		if c.is {
			a.broadcast(c.typ)
		}
		if c.is && c.typ == command.EventGIDChange {
			a.report(notify.GIDChange)
		}
	}
	if is.LID {
		a.moveRoutes()
	}
	if a.virtual() {
		a.engine.SetManagement(p.Management())
		if own := p.Settings().GUIDs[0]; own != 0 {
			a.guid = own
		}
	}
	a.setActive()
	p.Resume(now, is)
	if a.enabled {
		a.reroute()
	}
}

// setActive records whether the port passes data.
func (a *adapter) setActive() {
	if active := a.ib.Active(); active != a.present {
		a.present = active
		if !a.enabled {
			return
		}
		if active {
			a.broadcast(command.EventPortActive)
			a.report(notify.Up)
		} else {
			a.linkDowns++
			a.ib.Rest()
			a.broadcast(command.EventPortDown)
			a.report(notify.Down)
		}
	}
}

// moveRoutes puts the port's LID into routes after it has changed. Peers of connections are not told that
// the old one is invalid, as with any adapter.
func (a *adapter) moveRoutes() {
	for _, q := range a.byNumber {
		if q.tq != nil {
			if r := q.tq.Route(); r != nil {
				a.ib.From(r)
			}
		}
	}
	for _, c := range a.host.clients {
		c.ahs.Each(func(o *ah) {
			if o.pd.adapter == a {
				a.ib.From(&o.route)
			}
		})
	}
}

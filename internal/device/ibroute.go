package device

import (
	"context"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
)

// resolveTime limits a question to a Resolver that has no other limit.
const resolveTime = 10 * time.Second

// Resolver finds the port of an InfiniBand fabric that has an IP address, as IPoIB does by ARP. It may
// take until ctx ends.
type Resolver interface {
	ResolveGID(ctx context.Context, ip netip.Addr) (ib.GID, error)
}

// infiniBand returns the adapter with this index, whose port must be InfiniBand: NotFound, Invalid. The
// caller holds the loop lock.
func (h *Host) infiniBand(index uint32) (*adapter, error) {
	a, err := h.adapter(index)
	if err == nil && a.ib == nil {
		err = command.Errorf(command.Invalid, "adapter %q is an Ethernet port, want an InfiniBand one", a.name)
	}
	return a, err
}

// SetResolver makes an adapter ask r first for the ports of IP addresses; nil: no resolver. The error is
// NotFound, or Invalid if its port is not InfiniBand.
func (h *Host) SetResolver(index uint32, r Resolver) error {
	h.lock()
	defer h.finish()
	a, err := h.infiniBand(index)
	if err != nil {
		return err
	}
	if r == nil {
		a.ib.SetResolver(nil)
		return nil
	}
	a.ib.SetResolver(func(ip netip.Addr, done func(now clock.Time, gid ib.GID, err error)) { go h.ask(r, ip, done) })
	return nil
}

// ask asks a resolver beside the loop.
func (h *Host) ask(r Resolver, ip netip.Addr, done func(now clock.Time, gid ib.GID, err error)) {
	ctx, cancel := context.WithTimeout(context.Background(), resolveTime)
	defer cancel()
	gid, err := r.ResolveGID(ctx, ip)
	h.lock()
	defer h.finish()
	done(h.now(), gid, err)
}

// SetAddresses replaces the IP addresses that, apart from its GIDs, identify an InfiniBand port to
// programs, when those of its IPoIB interface change. The errors are those of SetResolver.
func (h *Host) SetAddresses(index uint32, ips []netip.Addr) error {
	h.lock()
	defer h.finish()
	a, err := h.infiniBand(index)
	if err != nil {
		return err
	}
	now := h.now()
	a.ib.SetAddresses(now, ips)
	if a.enabled {
		a.ib.Offer(now)
	}
	a.broadcast(command.EventGIDChange)
	return nil
}

// routeIB creates the prepared route to av from an InfiniBand port.
func (a *adapter) routeIB(av command.AddressVector) (*frame.Route, error) {
	from, err := a.gids.Row(uint32(av.SrcIndex))
	if err != nil {
		return nil, err
	}
	r, err := a.ib.Route(a.host.now(), from, av)
	if err != nil {
		return nil, err
	}
	if err := a.pace(r, av.StaticRate); err != nil {
		return nil, err
	}
	r.DstPort = a.cfg.UDPPort
	return r, a.prepare(r)
}

// near finds an enabled InfiniBand port of this host in the adapter's fabric by an address.
func (a *adapter) near(ip netip.Addr) (ib.GID, bool) {
	for _, o := range a.host.adapters {
		if o.ib != nil && o.enabled && o.owns(ip) && (o == a || o.ib.SameFabric(a.ib)) {
			return o.ib.GID(), true
		}
	}
	return ib.GID{}, false
}

// FabricPort returns what an adapter or a virtual function has of its InfiniBand port, and a number that changes with it. The errors are
// those of SetResolver.
func (h *Host) FabricPort(index uint32) (p link.Port, seen uint64, err error) {
	h.lock()
	defer h.unlock()
	a, err := h.infiniBand(index)
	if err != nil {
		return link.Port{}, 0, err
	}
	return *a.ib.Settings(), a.ib.Taken(), nil
}

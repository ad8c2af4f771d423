package device

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/ibport"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sa"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// resolveTime limits a question to a Resolver that has no other limit.
const resolveTime = 10 * time.Second

// Resolver finds the port of an InfiniBand fabric that has an IP address, as IPoIB does by ARP. It may
// take until ctx ends.
type Resolver interface {
	ResolveGID(ctx context.Context, ip netip.Addr) (ib.GID, error)
}

// infiniBand returns the adapter with this index, whose port must be InfiniBand: NotFound, Invalid. The
// caller holds the baton.
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
	a.resolver = r
	a.ib.ForgetNames()
	return nil
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

// routeIB creates the route to av from an InfiniBand port.
func (a *adapter) routeIB(av command.AddressVector) (*frame.Route, error) {
	from, err := a.gids.Row(av.SrcIndex)
	if err != nil {
		return nil, err
	}
	r := &frame.Route{DstPort: a.cfg.UDPPort, TrafficClass: av.TrafficClass, HopLimit: av.HopLimit, FlowLabel: av.FlowLabel}
	r.IB = frame.InfiniBand{DLID: ib.LID(av.LID), PathBits: av.Path &^ command.PathGlobal, SL: av.SL, Global: av.Path&command.PathGlobal != 0,
		SGID: ib.GID(from.As16()), DGID: ib.GID(av.Addr)}
	switch {
	case av.SL > 15:
		return nil, command.Errorf(command.Invalid, "SL is %d, want 0 to 15", av.SL)
	case av.FlowLabel > 0xfffff:
		return nil, command.Errorf(command.Invalid, "FlowLabel is %#x, want 20 bits", av.FlowLabel)
	}
	if err := a.destination(r, av.Addr.IP()); err != nil {
		return nil, err
	}
	r.Dst = frame.LIDAddr(r.IB.DLID)
	if r.IB.DLID >= ib.LIDFirstMulticast {
		r.IB.Global, r.Dst = true, netip.AddrFrom16(r.IB.DGID)
	}
	a.ib.From(r)
	return r, a.prepare(r)
}

// destination completes a route with its destination: a LID, or a port or group that was looked up before.
func (a *adapter) destination(r *frame.Route, ip netip.Addr) error {
	p, to := a.ib, &r.IB
	if ip.IsMulticast() {
		to.DGID = p.MGID(ip)
		g, asked := p.Group(to.DGID)
		if to.DLID == 0 && !asked {
			to.DGID = p.IPMGID(ip)
			g, _ = p.Group(to.DGID)
		}
		if g != nil && to.DLID == 0 {
			to.DLID, to.SL, r.FlowLabel, r.TrafficClass, r.HopLimit = g.MLID, g.SL, g.FlowLabel, g.TrafficClass, g.HopLimit
		}
		if to.DLID < ib.LIDFirstMulticast || to.DLID == ib.LIDPermissive {
			return command.Errorf(command.Invalid, "LID is %#x, want the multicast LID of group %v, which was not joined here", uint16(to.DLID), ip)
		}
		return nil
	}
	if to.DLID == 0 && !ip.IsUnspecified() {
		rec, ok := a.knownPath(ip)
		if !ok {
			return command.Errorf(command.HostUnreachable, "LID is 0, and no path to %v was asked for", ip)
		}
		to.DLID, to.SL, to.DGID = rec.DLID, rec.SL, rec.DGID
		to.Global = to.Global || rec.HopLimit > 1
	}
	if to.DLID == 0 || to.DLID > ib.LIDMaxUnicast {
		return command.Errorf(command.Invalid, "LID is %#x, want the destination's, 1 to 0xbfff", uint16(to.DLID))
	}
	if to.Global && to.DGID.IsZero() {
		return command.Errorf(command.Invalid, "Addr is %v: packets with a GRH need the destination's GID", ip)
	}
	return nil
}

// knownPath returns the path to an address that was looked up before, or that is this port's own.
func (a *adapter) knownPath(ip netip.Addr) (mad.PathRecord, bool) {
	now := a.host.now()
	if gid, ok := a.nearGID(ip); ok {
		return a.ib.KnownTo(now, gid)
	}
	return a.ib.Known(now, ip)
}

// nearGID returns the GID of an address that is a GID itself, or that belongs to an adapter of this host.
func (a *adapter) nearGID(ip netip.Addr) (ib.GID, bool) {
	if a.ib.IsGID(ip) {
		return ib.GID(ip.As16()), true
	}
	for _, o := range a.host.adapters {
		if o.ib != nil && o.enabled && o.owns(ip) && (o == a || o.ib.Beside(a.ib)) {
			return o.ib.GID(), true
		}
	}
	return ib.GID{}, false
}

// find asks which port has an address, and calls done with the answer, at once if it is known. The answer
// is the address itself if it is a GID, or comes from an adapter of this process, the Resolver, or the
// subnet administration's service records. An unknown address may be a GID of another subnet.
func (a *adapter) find(now clock.Time, ip netip.Addr, done func(now clock.Time, gid ib.GID, err error)) {
	if gid, ok := a.nearGID(ip); ok {
		done(now, gid, nil)
		return
	}
	switch q := a.ib.Find(now, ip, done); {
	case q == nil:
	case a.resolver == nil:
		a.ib.AskName(now, q)
	default:
		go a.askResolver(a.resolver, ip, q)
	}
}

// askResolver asks the resolver on a goroutine beside the loop.
func (a *adapter) askResolver(r Resolver, ip netip.Addr, q *ibport.Name) {
	ctx, cancel := context.WithTimeout(context.Background(), resolveTime)
	defer cancel()
	gid, err := r.ResolveGID(ctx, ip)
	a.host.lock()
	defer a.host.finish()
	if err != nil {
		a.ib.AskName(a.host.now(), q)
		return
	}
	a.ib.Found(a.host.now(), q, gid, nil)
}

// reach asks which port has an address and for the path to it.
func (a *adapter) reach(now clock.Time, ip netip.Addr, done func(now clock.Time, rec *mad.PathRecord, err error)) {
	a.find(now, ip, func(now clock.Time, gid ib.GID, err error) {
		if err != nil {
			done(now, nil, err)
			return
		}
		a.ib.PathTo(now, gid, done)
	})
}

// pathError converts a failed look-up at the subnet administration to a command's error.
func pathError(ip netip.Addr, err error) *command.Error {
	code := command.HostUnreachable
	switch {
	case errors.Is(err, sa.ErrTimeout):
		code = command.TimedOut
	case errors.Is(err, sa.ErrNoManager):
		code = command.NetworkUnreachable
	case errors.Is(err, sa.ErrFull):
		code = command.Exhausted
	}
	return command.Errorf(code, "%v: %v", ip, err)
}

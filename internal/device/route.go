package device

import (
	"errors"
	"net/netip"
	"slices"
	"syscall"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// route creates the prepared route to av.
func (a *adapter) route(av command.AddressVector) (*frame.Route, error) {
	if a.ib != nil {
		return a.routeIB(av)
	}
	src, err := a.gids.Row(uint32(av.SrcIndex))
	if err != nil {
		return nil, err
	}
	r := &frame.Route{
		Src: src, Dst: av.Addr.IP(), SrcPort: av.SrcPort, DstPort: a.cfg.UDPPort,
		TrafficClass: av.TrafficClass, HopLimit: av.HopLimit, FlowLabel: av.FlowLabel,
	}
	if r.Dst.IsMulticast() {
		r.Dst = a.groupOf(r.Dst)
	}
	if !r.Dst.IsValid() || r.Dst.IsUnspecified() {
		return nil, command.Errorf(command.Invalid, "Addr is %v, want an address", r.Dst)
	}
	if av.SL > 7 {
		return nil, command.Errorf(command.Invalid, "SL is %d, want 0 to 7", av.SL)
	}
	if av.FlowLabel > 0xfffff {
		return nil, command.Errorf(command.Invalid, "FlowLabel is %#x, want 20 bits", av.FlowLabel)
	}
	if err := a.pace(r, av.StaticRate); err != nil {
		return nil, err
	}
	a.mark(r, chosen(&av))
	if r.SrcPort == 0 {
		r.SrcPort = sourcePort(src, r.Dst)
	}
	return r, a.prepare(r)
}

// pace limits what leaves by a route to the static rate of an address vector, if the port is faster than that.
func (a *adapter) pace(r *frame.Route, code uint8) error {
	mbps := ib.Rate(code).Mbps()
	if mbps == 0 && ib.Rate(code) != ib.RateAny {
		return command.Errorf(command.Invalid, "StaticRate is %d, want 0 or a code of a rate from 2 to %d", code, ib.Rates-1)
	}
	if own := a.speed() / 1e6; own != 0 && uint64(mbps) >= uint64(own) {
		mbps = 0
	}
	a.engine.Pace(a.host.now(), r, uint32(mbps)*1000)
	return nil
}

// routable returns why packets from a row of the GID table to an address cannot be sent; nil if they can.
func (a *adapter) routable(from uint32, to netip.Addr) error {
	// Packets from the own port need no socket.
	r, err := a.route(command.AddressVector{Addr: command.AddrFrom(to), SrcIndex: uint16(from), SrcPort: a.cfg.UDPPort})
	r.Release()
	return err
}

// prepare completes a route for the link that has its source address.
func (a *adapter) prepare(r *frame.Route) error {
	p := a.links.For(r.Src)
	if p == nil || p.Link == nil {
		return command.Errorf(command.AddrNotAvailable, "%v is not an address of adapter %q", r.Src, a.name)
	}
	if err := p.Link.Prepare(r); err != nil {
		return &command.Error{Code: unreachableCode(err), Detail: err.Error()}
	}
	r.Near, r.Bursts = a.serves(r), p.Link.Capabilities().MaxSegments > 1
	return nil
}

// serves reports whether the loop itself serves the destination of a route. That may change while the
// route is in use; it affects the speed, not what arrives.
func (a *adapter) serves(r *frame.Route) bool {
	return slices.ContainsFunc(a.host.adapters, func(b *adapter) bool { return b.enabled && b.receives(a, r) })
}

// unreachableCode returns the class of a system error about a destination.
func unreachableCode(err error) command.Code {
	switch {
	case errors.Is(err, syscall.ENETUNREACH):
		return command.NetworkUnreachable
	case errors.Is(err, syscall.EHOSTUNREACH):
		return command.HostUnreachable
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return command.AddrNotAvailable
	}
	return command.Invalid
}

// sourcePort returns the UDP source port of packets that belong to no connection of the CM: a port of the
// dynamic range, always the same for a pair of addresses.
func sourcePort(src, dst netip.Addr) uint16 {
	s, d := src.As16(), dst.As16()
	h := uint32(2166136261)
	for i := range s {
		h = (h ^ uint32(s[i])) * 16777619
		h = (h ^ uint32(d[i])) * 16777619
	}
	return uint16(h^h>>16) | 0xc000
}

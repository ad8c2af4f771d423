package ibport

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// Route returns the route from a row of the port's GID table to av, without the UDP port of its links. It
// is made of what is known: Reach and SendTo ask. Errors are *command.Error.
func (p *Port) Route(now clock.Time, from netip.Addr, av command.AddressVector) (*frame.Route, error) {
	r := &frame.Route{TrafficClass: av.TrafficClass, HopLimit: av.HopLimit, FlowLabel: av.FlowLabel}
	r.IB = frame.InfiniBand{DLID: ib.LID(av.LID), PathBits: av.Path &^ command.PathGlobal, SL: av.SL,
		Global: av.Path&command.PathGlobal != 0,
		SGID:   ib.GID(from.As16()), DGID: ib.GID(av.Addr)}
	switch {
	case av.SL > 15:
		return nil, command.Errorf(command.Invalid, "SL is %d, want 0 to 15", av.SL)
	case av.FlowLabel > 0xfffff:
		return nil, command.Errorf(command.Invalid, "FlowLabel is %#x, want 20 bits", av.FlowLabel)
	}
	if err := p.destination(now, r, av.Addr.IP()); err != nil {
		return nil, err
	}
	r.Dst = frame.LIDAddr(r.IB.DLID)
	if r.IB.DLID >= ib.LIDFirstMulticast {
		r.IB.Global, r.Dst = true, netip.AddrFrom16(r.IB.DGID)
	}
	p.From(r)
	return r, nil
}

// destination completes a route with its destination: a LID, or a port or group that was looked up before.
func (p *Port) destination(now clock.Time, r *frame.Route, ip netip.Addr) error {
	to := &r.IB
	if ip.IsMulticast() {
		to.DGID = p.MGID(ip)
		g, asked := p.group(to.DGID)
		if to.DLID == 0 && !asked {
			to.DGID = p.IPMGID(ip)
			g, _ = p.group(to.DGID)
		}
		if g != nil && to.DLID == 0 {
			to.DLID, to.SL, r.FlowLabel, r.TrafficClass, r.HopLimit = g.MLID, g.SL, g.FlowLabel, g.TrafficClass, g.HopLimit
		}
		if to.DLID < ib.LIDFirstMulticast || to.DLID == ib.LIDPermissive {
			return command.Errorf(command.Invalid, "LID is %#x, want the multicast LID of group %v, which was not joined here",
				uint16(to.DLID), ip)
		}
		return nil
	}
	if to.DLID == 0 && !ip.IsUnspecified() {
		rec, ok := p.Known(now, ip)
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

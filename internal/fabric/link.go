package fabric

import (
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Capability bits that all ports have (IBA 14.2.5.6).
const portCapabilities = mad.CapIsTrapSupported | mad.CapIsSLMappingSupported | mad.CapIsSystemImageGUIDSupported |
	mad.CapIsCapabilityMask2Supported | mad.CapIsVendorClassSupported | mad.CapIsCapabilityMaskNoticeSupported |
	mad.CapIsClientReregistrationSupported | mad.CapIsOtherLocalChangesNoticeSupported

// reset sets the port's state to what it has when its node starts; r is the best rate of its link.
func (p *port) reset(n *node, r topology.Rate) {
	i := mad.PortInfo{
		PortState: mad.PortDown, PortPhysicalState: mad.PhysicalPolling, LinkDownDefaultState: mad.PhysicalPolling,
		MTUCap: ib.MTU4096, NeighborMTU: ib.MTU4096, LinkSpeedActive: 1, VLCap: vlCap, OperationalVLs: vlCap,
		VLArbitrationHighCap: arbitrationCap, VLArbitrationLowCap: arbitrationCap, VLStallCount: 7, HOQLife: 31,
		LocalPhyErrors: 8, OverrunErrors: 8,
	}
	if !n.external(p) {
		i.GIDPrefix, i.SubnetTimeOut, i.RespTimeValue = 0xfe80<<48, 18, 16
		i.CapabilityMask, i.GUIDCap = portCapabilities, adapterGUIDs
		if n.kind == mad.NodeSwitch {
			i.GUIDCap = 1
			i.CapabilityMask |= mad.CapIsMulticastFDBTopSupported
		}
	}
	p.ext = mad.ExtendedPortInfo{}
	setSupported(&i, &p.ext, r)
	i.LinkWidthActive = mad.Widest(i.LinkWidthSupported & (mad.Width1x | mad.Width4x))
	if n.kind == mad.NodeSwitch && p.number == 0 { // it has no link
		i.PortState, i.PortPhysicalState = mad.PortActive, mad.PhysicalLinkUp
	}
	p.virtual.forget()
	p.info, p.tables, p.counters, p.lease, p.traffic, p.flow, p.led = i, nil, nil, nil, traffic{}, nil, false
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// setSupported makes the port support rates up to r.
func setSupported(i *mad.PortInfo, ext *mad.ExtendedPortInfo, r topology.Rate) {
	for w := mad.Width1x; w <= mad.Width2x; w <<= 1 {
		if mad.Lanes(w) == mad.Lanes(r.Width) || mad.Lanes(w) < mad.Lanes(r.Width) && w != mad.Width2x {
			i.LinkWidthSupported |= w
		}
	}
	if r.Width == mad.Width2x {
		i.CapabilityMask2 |= mad.Cap2IsLinkWidth2xSupported
	}
	for s := mad.SpeedSDR; s <= r.Speed; s++ {
		switch base, extended, second := speedBits(s); {
		case s == mad.SpeedFDR10:
			ext.LinkSpeedSupported |= flag(r.Speed == mad.SpeedFDR10) * mad.FDR10
		default:
			i.LinkSpeedSupported |= base
			i.LinkSpeedExtSupported |= extended
			i.LinkSpeedExt2Supported |= second
		}
	}
	i.LinkWidthEnabled, i.LinkSpeedEnabled, i.LinkSpeedExtEnabled, i.LinkSpeedExt2Enabled =
		i.LinkWidthSupported, i.LinkSpeedSupported, i.LinkSpeedExtSupported, i.LinkSpeedExt2Supported
	ext.LinkSpeedEnabled = ext.LinkSpeedSupported
	if r.Speed >= mad.SpeedFDR {
		i.CapabilityMask |= mad.CapIsExtendedSpeedsSupported
	}
	for s, bit := range map[mad.Speed]uint16{mad.SpeedHDR: mad.Cap2IsLinkSpeedHDRSupported, mad.SpeedNDR: mad.Cap2IsLinkSpeedNDRSupported,
		mad.SpeedXDR: mad.Cap2IsLinkSpeedXDRSupported | mad.Cap2IsExtendedSpeeds2Supported} {
		if r.Speed >= s {
			i.CapabilityMask2 |= bit
		}
	}
}

// speedBits returns the bit of a speed in each of the three fields of PortInfo.
func speedBits(s mad.Speed) (base, extended, second uint8) {
	switch {
	case s <= mad.SpeedQDR:
		return 1 << (s - mad.SpeedSDR), 0, 0
	case s >= mad.SpeedFDR && s <= mad.SpeedNDR:
		return 0, 1 << (s - mad.SpeedFDR), 0
	case s == mad.SpeedXDR:
		return 0, 0, 1
	}
	return 0, 0, 0
}

// waits reports whether the port is looking for the other end.
func (p *port) waits() bool {
	return p.info.PortPhysicalState == mad.PhysicalPolling || p.info.PortPhysicalState == mad.PhysicalSleep
}

// up reports whether packets can pass.
func (p *port) up() bool { return p.info.PortPhysicalState == mad.PhysicalLinkUp }

// train brings the link at the port up if the cable is plugged in, both ends wait for each other, at least
// one is polling, and they have a width and a speed in common (IBA volume 2, 5.6).
func (f *Fabric) train(p *port) {
	if p.peer == noPort {
		return
	}
	q := &f.ports[p.peer]
	if p.cut || q.cut || p.dark || q.dark || !p.waits() || !q.waits() ||
		p.info.PortPhysicalState == mad.PhysicalSleep && q.info.PortPhysicalState == mad.PhysicalSleep {
		return
	}
	a, b := &p.info, &q.info
	width := mad.Widest(a.LinkWidthEnabled & b.LinkWidthEnabled)
	base := a.LinkSpeedEnabled & b.LinkSpeedEnabled
	extended, second, fdr10 := a.LinkSpeedExtEnabled&b.LinkSpeedExtEnabled, a.LinkSpeedExt2Enabled&b.LinkSpeedExt2Enabled,
		p.ext.LinkSpeedEnabled&q.ext.LinkSpeedEnabled
	if width == 0 || base|extended|second|fdr10 == 0 {
		return
	}
	for _, e := range []*port{p, q} {
		e.info.LinkWidthActive = width
		e.info.LinkSpeedActive, e.info.LinkSpeedExtActive, e.info.LinkSpeedExt2Active, e.ext.LinkSpeedActive = top(base), top(extended),
			top(second), 0
		if second != 0 {
			e.info.LinkSpeedExtActive = 0
		}
		if e.info.LinkSpeedActive == 0 { // with an extended speed the field has its minimum
			e.info.LinkSpeedActive = 1
		}
		if extended|second == 0 {
			e.ext.LinkSpeedActive = fdr10
		}
		e.info.PortPhysicalState, e.info.PortState = mad.PhysicalLinkUp, mad.PortInit
		f.linkChanged(e)
	}
}

// top returns the highest bit set.
func top(bits uint8) uint8 {
	for bits&(bits-1) != 0 {
		bits &= bits - 1
	}
	return bits
}

// lose takes the link at the port down because of a fault, which both ends count.
func (f *Fabric) lose(p *port) {
	if p.up() {
		p.count(ctrLinkDowned, 1)
		f.ports[p.peer].count(ctrLinkDowned, 1)
		f.drop(p, p.info.LinkDownDefaultState)
	}
}

// drop takes the link at the port down. The port's physical state becomes physical, the other end goes to
// its default state.
func (f *Fabric) drop(p *port, physical mad.PortPhysicalState) {
	was := p.up()
	f.cutLanes(p)
	p.virtual.fall()
	p.info.PortPhysicalState = physical
	if p.info.PortState != mad.PortDown {
		p.info.PortState = mad.PortDown
		f.linkChanged(p)
	}
	if !was || p.peer == noPort {
		return
	}
	q := &f.ports[p.peer]
	if !q.up() {
		return
	}
	f.cutLanes(q)
	q.virtual.fall()
	q.info.PortPhysicalState, q.info.PortState = q.info.LinkDownDefaultState, mad.PortDown
	f.linkChanged(q)
}

// linkChanged notes that a link came up or went down, which switches report (IBA 14.2.5.4 and 14.3.13).
func (f *Fabric) linkChanged(p *port) {
	f.touch(p)
	if n := &f.nodes[p.node]; n.kind == mad.NodeSwitch {
		n.sw.info.PortStateChange = true
		f.portStateChanged(n)
	}
}

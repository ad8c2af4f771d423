package subnet

import (
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/mad"
)

// askAt returns the end port by which a port is managed: port 0 of its switch, or itself.
func (s *SM) askAt(p int32) int32 { return s.cur.Entry(p) }

func (s *SM) portModifier(p int32) uint32 { return uint32(s.cur.Ports[p].Num) }

// wanted returns how a port is to be configured, and whether that differs from its current state.
func (s *SM) wanted(p int32) (d mad.PortInfo, changed bool) {
	n := s.cur
	port := &n.Ports[p]
	now := &port.Info
	d = *now
	d.PortState, d.PortPhysicalState, d.LinkDownDefaultState, d.ClientReregister = 0, 0, 0, false
	if port.Reach {
		d.MKey, d.MKeyProtectBits, d.MKeyLeasePeriod = s.cfg.MKey, s.cfg.MKeyProtect, s.cfg.MKeyLease
		d.GIDPrefix, d.LID, d.MasterSMLID, d.MasterSMSL, d.SubnetTimeOut = s.cfg.Prefix, s.wantLID[p], s.wantLID[n.Self], s.cfg.SL,
			s.cfg.Limits.SubnetTimeout
		if d.LMC = s.cfg.LMC; n.IsSwitch(p) {
			d.LMC = 0
		}
	}
	if port.Num != 0 && port.Peer != topology.None && n.Ports[port.Peer].Known && topology.Linked(now) {
		s.wantedLink(p, &d)
	}
	compare := *now
	compare.PortState, compare.PortPhysicalState, compare.LinkDownDefaultState, compare.ClientReregister = 0, 0, 0, false
	return d, d != compare || s.tellClients(p)
}

// tellClients reports whether the clients of a port are to reregister because there is a new master.
func (s *SM) tellClients(p int32) bool {
	port := &s.cur.Ports[p]
	return s.reregister && !s.cfg.NoReregister && port.Reach && !s.cur.IsSwitch(p) && port.Info.PortState == mad.PortActive &&
		port.Info.CapabilityMask&mad.CapIsClientReregistrationSupported != 0
}

// wantedLink sets what both ends of a link must agree on.
func (s *SM) wantedLink(p int32, d *mad.PortInfo) {
	n, l := s.cur, s.cfg.Limits
	here, peer := &n.Ports[p].Info, n.Ports[p].Peer
	there := &n.Ports[peer].Info
	d.NeighborMTU = max(1, min(here.MTUCap, there.MTUCap))
	d.OperationalVLs = max(1, min(here.VLCap, there.VLCap, l.MaxVLs))
	d.LocalPhyErrors, d.OverrunErrors = l.LocalPhyErrors, l.OverrunErrors
	if n.IsSwitch(p) {
		d.HOQLife, d.VLStallCount = l.HOQLife, l.StallCount
		if n.EndPort(peer) {
			d.HOQLife, d.VLStallCount = l.LeafHOQLife, l.LeafStallCount
			s.enforcement(p, d)
		}
	}
	if q := s.qos(); q != nil {
		own, other := q.of(n, p), q.of(n, peer)
		d.VLHighLimit = own.HighLimit
		d.OperationalVLs = min(d.OperationalVLs, own.code(), other.code())
	}
	if here.PortState == mad.PortInit {
		d.PortState = mad.PortArmed
	}
}

// activate activates all links that are armed at both ends.
func (s *SM) activate() {
	s.stage = stageActivate
	n := s.cur
	for i := range n.Ports {
		p := int32(i)
		port := &n.Ports[p]
		if port.Index != 0 {
			s.activateVirtual(p)
			continue
		}
		if port.Num != 0 && port.Known && port.Peer != topology.None && port.Info.PortState == mad.PortArmed &&
			n.Ports[port.Peer].Info.PortState >= mad.PortArmed {
			s.x.push(work{at: s.askAt(p), attr: mad.AttrPortInfo, mod: s.portModifier(p), set: true, kind: kindActivate})
		}
	}
}

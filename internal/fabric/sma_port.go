package fabric

import "github.com/softvpi/softvpi/wire/mad"

// extendedSpeedsKnown is the bit of the attribute modifier by which a subnet manager says that it supports
// LinkSpeedExtEnabled (IBA 14.2.5.6).
const extendedSpeedsKnown = 1 << 31

// portInfo answers PortInfo (IBA 14.2.5.6).
func (f *Fabric) portInfo(r *smaRequest) uint16 {
	p := f.target(r, r.modifier&^extendedSpeedsKnown)
	if p == nil {
		return mad.StatusInvalidField
	}
	status := uint16(mad.StatusOK)
	reregister := false
	if r.set {
		want, err := mad.ParsePortInfo(r.data)
		if err != nil || !f.validPortInfo(r, p, &want) {
			status = mad.StatusInvalidField
		} else {
			f.setPortInfo(r, p, &want)
			if reregister = want.ClientReregister && !r.node.external(p); reregister && p.lanes != nil {
				p.lanes.asked++
			}
			f.touch(p)
		}
	}
	i := p.info
	i.LocalPortNum, i.ClientReregister = r.in.number, reregister
	if !r.known && i.MKeyProtectBits != 0 { // the M_Key is hidden from those who do not know it
		i.MKey = 0
	}
	i.Append(r.data[:0])
	return status
}

// validPortInfo reports whether a Set is valid: all fields are checked before any takes effect.
func (f *Fabric) validPortInfo(r *smaRequest, p *port, want *mad.PortInfo) bool {
	i := &p.info
	linked := !(r.node.kind == mad.NodeSwitch && p.number == 0)
	width, speed, extended := want.LinkWidthEnabled, want.LinkSpeedEnabled, want.LinkSpeedExtEnabled
	switch {
	case linked && width != 255 && width&^i.LinkWidthSupported != 0,
		linked && speed != 15 && speed&^i.LinkSpeedSupported != 0,
		linked && r.modifier&extendedSpeedsKnown != 0 && extended < 30 && extended&^i.LinkSpeedExtSupported != 0,
		want.PortPhysicalState > mad.PhysicalDisabled,
		want.LinkDownDefaultState > mad.PhysicalPolling,
		want.OperationalVLs > i.VLCap,
		want.NeighborMTU > i.MTUCap:
		return false
	}
	if !r.node.external(p) && (want.LID > 0xbfff || want.MasterSMLID > 0xbfff) {
		return false
	}
	switch want.PortState {
	case mad.PortStateNoChange, mad.PortDown:
		return true
	case mad.PortArmed:
		return i.PortState == mad.PortInit || i.PortState == mad.PortArmed
	case mad.PortActive:
		return i.PortState == mad.PortArmed || i.PortState == mad.PortActive
	}
	return false
}

// setPortInfo executes a valid Set.
func (f *Fabric) setPortInfo(r *smaRequest, p *port, want *mad.PortInfo) {
	i := &p.info
	if !r.node.external(p) {
		setEndPort(i, want)
	}
	if r.node.kind == mad.NodeSwitch && p.number == 0 {
		return // it has no link
	}
	setLinkEnabled(i, want, r.modifier&extendedSpeedsKnown != 0)
	if want.LinkDownDefaultState != 0 {
		i.LinkDownDefaultState = want.LinkDownDefaultState
	}
	if want.NeighborMTU != 0 {
		i.NeighborMTU = want.NeighborMTU
	}
	if want.OperationalVLs != 0 {
		i.OperationalVLs = want.OperationalVLs
	}
	i.VLHighLimit, i.VLStallCount, i.HOQLife = want.VLHighLimit, want.VLStallCount, want.HOQLife
	i.PartitionEnforcementInbound, i.PartitionEnforcementOutbound = want.PartitionEnforcementInbound, want.PartitionEnforcementOutbound
	i.FilterRawInbound, i.FilterRawOutbound = want.FilterRawInbound, want.FilterRawOutbound
	i.LocalPhyErrors, i.OverrunErrors = want.LocalPhyErrors, want.OverrunErrors
	f.setPortState(p, want.PortState, want.PortPhysicalState)
}

// setEndPort sets the fields that only ports with a LID have.
func setEndPort(i, want *mad.PortInfo) {
	i.MKey, i.GIDPrefix, i.LID, i.MasterSMLID = want.MKey, want.GIDPrefix, want.LID, want.MasterSMLID
	i.MKeyLeasePeriod, i.MKeyProtectBits, i.LMC, i.MasterSMSL = want.MKeyLeasePeriod, want.MKeyProtectBits, want.LMC, want.MasterSMSL
	i.InitTypeReply, i.SubnetTimeOut = want.InitTypeReply, want.SubnetTimeOut
	i.MKeyViolations, i.PKeyViolations, i.QKeyViolations = want.MKeyViolations, want.PKeyViolations, want.QKeyViolations
}

// setLinkEnabled sets widths and speeds, which take effect when the link next comes up.
func setLinkEnabled(i, want *mad.PortInfo, extended bool) {
	if w := want.LinkWidthEnabled; w == 255 {
		i.LinkWidthEnabled = i.LinkWidthSupported
	} else if w != 0 {
		i.LinkWidthEnabled = w
	}
	if s := want.LinkSpeedEnabled; s == 15 {
		i.LinkSpeedEnabled = i.LinkSpeedSupported
	} else if s != 0 {
		i.LinkSpeedEnabled = s
	}
	if !extended {
		return
	}
	switch e := want.LinkSpeedExtEnabled; e {
	case 0:
	case 30: // none
		i.LinkSpeedExtEnabled = 0
	case 31:
		i.LinkSpeedExtEnabled = i.LinkSpeedExtSupported
	default:
		i.LinkSpeedExtEnabled = e
	}
	if e := want.LinkSpeedExt2Enabled & i.LinkSpeedExt2Supported; e != 0 {
		i.LinkSpeedExt2Enabled = e
	}
}

// setPortState makes the transitions that a Set may (IBA 14.2.5.6). Down takes the link down; it comes up
// again unless a physical state given with it prevents that.
func (f *Fabric) setPortState(p *port, state mad.PortState, physical mad.PortPhysicalState) {
	switch {
	case state == mad.PortArmed || state == mad.PortActive:
		p.info.PortState = state
		return
	case physical != mad.PhysicalNoChange:
		f.drop(p, physical)
	case state == mad.PortDown:
		if p.info.PortPhysicalState == mad.PhysicalDisabled {
			return // only a physical state leaves this state
		}
		f.drop(p, p.info.LinkDownDefaultState)
	default:
		return
	}
	f.train(p)
}

// extendedPortInfo answers the vendor's ExtendedPortInfo, which holds the speed FDR10.
func (f *Fabric) extendedPortInfo(r *smaRequest) uint16 {
	p := f.target(r, r.modifier)
	if p == nil {
		return mad.StatusInvalidField
	}
	status := uint16(mad.StatusOK)
	if r.set {
		if want, err := mad.ParseExtendedPortInfo(r.data); err != nil || want.LinkSpeedEnabled&^p.ext.LinkSpeedSupported != 0 {
			status = mad.StatusInvalidField
		} else {
			p.ext.StateChangeEnable, p.ext.LinkSpeedEnabled = want.StateChangeEnable, want.LinkSpeedEnabled
		}
	}
	clear(r.data)
	p.ext.Append(r.data[:0])
	return status
}

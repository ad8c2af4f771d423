package fabric

import (
	"fmt"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// virtualAttribute answers the vendor's attributes of virtual ports, which channel adapters have.
func (f *Fabric) virtualAttribute(r *smaRequest, id uint16) uint16 {
	if r.node.kind != mad.NodeCA {
		return mad.StatusAttributeUnsupported
	}
	switch id {
	case mad.AttrGeneralInfo:
		return generalInfo(r)
	case mad.AttrVirtualizationInfo:
		return f.virtualizationInfo(r)
	case mad.AttrVPortState:
		return vportStates(r)
	case mad.AttrVPortInfo:
		return f.vportInfo(r)
	case mad.AttrVPortPKeyTable:
		return f.vportPKeys(r)
	case mad.AttrVNodeInfo, mad.AttrVNodeDescription, mad.AttrVPortGUIDInfo:
		return vportConstants(r, id)
	}
	return mad.StatusAttributeUnsupported
}

// vportConstants answers what a subnet manager does not set.
func vportConstants(r *smaRequest, id uint16) uint16 {
	if r.set {
		return mad.StatusMethodUnsupported
	}
	index := uint16(r.modifier)
	if id == mad.AttrVPortGUIDInfo {
		index = uint16(r.modifier >> 16)
	}
	guid, ok := r.vport(index)
	if !ok {
		return mad.StatusInvalidField
	}
	clear(r.data)
	switch id {
	case mad.AttrVNodeInfo:
		i := mad.VNodeInfo{PartitionCap: virtualPKeys, LocalPortNum: 1, NumPorts: 1, GUID: guid}
		if index == 0 {
			i.PartitionCap, i.LocalPortNum, i.NumPorts, i.GUID = adapterPKeys, r.own.number, r.node.count, r.node.guid
		}
		i.Append(r.data[:0])
	case mad.AttrVNodeDescription:
		d := r.node.description
		if index != 0 {
			d = mad.DescribeNode(fmt.Sprintf("%s vport %d", d, index))
		}
		copy(r.data, d[:])
	case mad.AttrVPortGUIDInfo:
		if uint16(r.modifier) != 0 {
			return mad.StatusInvalidField
		}
		g := mad.GUIDInfo{guid}
		g.Append(r.data[:0])
	}
	return mad.StatusOK
}

// vport returns the GUID of a virtual port, 0 being the port itself; false: there is none.
func (r *smaRequest) vport(index uint16) (guid uint64, ok bool) {
	if index == 0 {
		return r.own.guid, true
	}
	x := r.own.virtual.at(index)
	if x == nil {
		return 0, false
	}
	return x.GUID, true
}

// generalInfo answers GeneralInfo for the capabilities, of which there is one.
func generalInfo(r *smaRequest) uint16 {
	switch {
	case r.set:
		return mad.StatusMethodUnsupported
	case r.modifier != mad.GeneralInfoCapabilities:
		return mad.StatusInvalidField
	}
	clear(r.data)
	g := mad.GeneralInfo{1 << mad.CapVirtualization}
	g.Append(r.data[:0])
	return mad.StatusOK
}

func (f *Fabric) virtualizationInfo(r *smaRequest) uint16 {
	p, status := r.own, uint16(mad.StatusOK)
	if r.set {
		want, err := mad.ParseVirtualizationInfo(r.data)
		switch {
		case err != nil:
			status = mad.StatusInvalidField
		default:
			if p.virtual == nil {
				p.virtual = &virtual{}
			}
			v := p.virtual
			if v.enabled != want.Enable {
				v.forget()
				v.enabled = want.Enable
			}
			if want.StateChange { // it is cleared by setting it
				v.changed = false
			}
			for i := range v.ports {
				if want.Reregister {
					v.ports[i].asked++
				}
			}
		}
	}
	i := mad.VirtualizationInfo{Cap: MostVirtual, Top: p.virtual.top()}
	if v := p.virtual; v != nil {
		i.Enable, i.StateChange = v.enabled, v.changed
	}
	clear(r.data)
	i.Append(r.data[:0])
	return status
}

func vportStates(r *smaRequest) uint16 {
	switch {
	case r.set:
		return mad.StatusMethodUnsupported
	case r.modifier != 0:
		return mad.StatusInvalidField
	}
	var s mad.VPortStates
	for i := range s {
		s[i] = r.own.stateOf(uint16(i))
	}
	s.Append(r.data[:0])
	return mad.StatusOK
}

// vportInfo answers VPortInfo. The port itself is virtual port 0, whose state follows that of the port.
func (f *Fabric) vportInfo(r *smaRequest) uint16 {
	p, index := r.own, uint16(r.modifier)
	x := p.virtual.at(index)
	if r.modifier > MostVirtual || index != 0 && x == nil {
		return mad.StatusInvalidField
	}
	status, reregister := uint16(mad.StatusOK), false
	if r.set && x != nil {
		want, err := mad.ParseVPortInfo(r.data)
		if err != nil || !p.setVirtual(x, &want) {
			status = mad.StatusInvalidField
		} else if reregister = want.Reregister; reregister {
			x.asked++
		}
	}
	i := mad.VPortInfo{State: p.stateOf(index), GUIDCap: 1, CapabilityMask: 1, Reregister: reregister}
	if x == nil {
		i.LID, i.GUID = p.info.LID, p.guid
	} else {
		i.LIDRequired, i.LID, i.GUID = true, x.lid, x.GUID
	}
	clear(r.data)
	i.Append(r.data[:0])
	return status
}

// setVirtual changes a virtual port by a Set; false: that is not valid, and it stays as it is. States change as those of ports do (IBA
// 14.2.5.6).
func (p *port) setVirtual(x *virtualPort, want *mad.VPortInfo) bool {
	now := p.stateOf(x.Index)
	valid := want.State == 0 || want.State == mad.PortDown ||
		want.State == mad.PortArmed && (now == mad.PortInit || now == mad.PortArmed) ||
		want.State == mad.PortActive && (now == mad.PortArmed || now == mad.PortActive)
	if !valid || want.LID > ib.LIDMaxUnicast || want.LID == 0 && want.State >= mad.PortArmed {
		return false
	}
	x.lid = want.LID
	switch want.State {
	case mad.PortDown:
		x.state = mad.PortInit
	case mad.PortArmed, mad.PortActive:
		x.state = want.State
	}
	return true
}

func (f *Fabric) vportPKeys(r *smaRequest) uint16 {
	index, block := uint16(r.modifier>>16), uint16(r.modifier)
	x := r.own.virtual.at(index)
	if x == nil || block != 0 {
		return mad.StatusInvalidField
	}
	if r.set {
		want, err := mad.ParsePKeyTable(r.data)
		if err != nil {
			return mad.StatusInvalidField
		}
		x.pkeys = want
	}
	x.pkeys.Append(r.data[:0])
	return mad.StatusOK
}

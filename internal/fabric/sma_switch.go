package fabric

import (
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

const (
	linearBlock = mad.LinearForwardingTableLen
	castBlock   = mad.MulticastForwardingTableLen / 2
)

// reset clears the switch's forwarding state.
func (s *switchState) reset(enhanced bool) {
	*s = switchState{info: mad.SwitchInfo{
		LinearFDBCap: linearCap, MulticastFDBCap: multicastCap, LifeTimeValue: 18, PartitionEnforcementCap: enforcedPKeys,
		InboundEnforcementCap: true, OutboundEnforcementCap: true, FilterRawInboundCap: true, FilterRawOutboundCap: true,
		EnhancedPort0: enhanced, OptimizedSLtoVLMappingProgramming: 1, MulticastFDBTop: uint16(ib.LIDMaxUnicast),
	}}
}

// switchInfo answers SwitchInfo (IBA 14.2.5.4).
func (f *Fabric) switchInfo(r *smaRequest) uint16 {
	if r.node.sw == nil {
		return mad.StatusAttributeUnsupported
	}
	i := &r.node.sw.info
	status := uint16(mad.StatusOK)
	if r.set {
		want, err := mad.ParseSwitchInfo(r.data)
		switch {
		case err != nil, want.LinearFDBTop >= linearCap,
			want.MulticastFDBTop > uint16(ib.LIDFirstMulticast)+multicastCap-1:
			status = mad.StatusInvalidField
		default:
			i.LinearFDBTop, i.LifeTimeValue = want.LinearFDBTop, want.LifeTimeValue
			i.DefaultPort, i.DefaultMulticastPrimaryPort, i.DefaultMulticastNotPrimaryPort = want.DefaultPort,
				want.DefaultMulticastPrimaryPort, want.DefaultMulticastNotPrimaryPort
			if want.MulticastFDBTop != 0 {
				i.MulticastFDBTop = want.MulticastFDBTop
			}
			if want.PortStateChange { // writing a one clears it
				i.PortStateChange = false
			}
		}
	}
	clear(r.data)
	i.Append(r.data[:0])
	return status
}

// linearForwarding answers LinearForwardingTable (IBA 14.2.5.10).
func (f *Fabric) linearForwarding(r *smaRequest) uint16 {
	if r.node.sw == nil {
		return mad.StatusAttributeUnsupported
	}
	s := r.node.sw
	if r.modifier >= linearCap/linearBlock {
		return mad.StatusInvalidField
	}
	at := int(r.modifier) * linearBlock
	if r.set {
		copy(s.block(at), r.data)
		return mad.StatusOK
	}
	for i := range r.data {
		r.data[i] = s.out(ib.LID(at + i))
	}
	return mad.StatusOK
}

// multicastForwarding answers MulticastForwardingTable (IBA 14.2.5.12).
func (f *Fabric) multicastForwarding(r *smaRequest) uint16 {
	if r.node.sw == nil {
		return mad.StatusAttributeUnsupported
	}
	block, position := int(r.modifier&0x1ff), int(r.modifier>>28)
	if r.modifier&^0xf00001ff != 0 || block >= multicastCap/castBlock || position > int(r.node.count)/16 {
		return mad.StatusInvalidField
	}
	s := r.node.sw
	if s.cast == nil {
		s.cast = make([][]uint16, int(r.node.count)/16+1)
	}
	masks := &s.cast[position]
	at := block * castBlock
	if r.set {
		want, err := mad.ParseMulticastForwardingTable(r.data)
		if err != nil {
			return mad.StatusInvalidField
		}
		if need := at + castBlock - len(*masks); need > 0 {
			*masks = append(*masks, make([]uint16, need)...)
		}
		copy((*masks)[at:], want[:])
	}
	var t mad.MulticastForwardingTable
	if at < len(*masks) {
		copy(t[:], (*masks)[at:])
	}
	t.Append(r.data[:0])
	return mad.StatusOK
}

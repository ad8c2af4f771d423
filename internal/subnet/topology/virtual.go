package topology

import (
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// VPort says of a port that it is a virtual one. The zero value is none.
type VPort struct {
	Index  uint16 // at its port, from 1 on; 0: it is no virtual port
	Base   int32  // its port
	Shares bool   // it has the LID of its port, not one of its own
	Cap    int    // rows of its partition table
	State  mad.PortState
}

// AddVirtual adds a virtual port to an end port: an end port of its own, with what its port has but GUID and LID.
func (n *Subnet) AddVirtual(base int32, index uint16, guid uint64, lid ib.LID, state mad.PortState, shares bool) int32 {
	v := n.Ports[base]
	v.VPort = VPort{Index: index, Base: base, Shares: shares, State: state, Cap: len(mad.PKeyTable{})}
	v.GUID, v.PKeys, v.Reach, v.Known = guid, nil, true, true
	v.Info.LID, v.Info.LMC, v.Info.GUIDCap, v.Info.CapabilityMask = lid, 0, 1, v.Info.CapabilityMask&^mad.CapIsSM
	if shares {
		v.Info.LID = n.Ports[base].Info.LID
	}
	p := int32(len(n.Ports))
	n.Ports = append(n.Ports, v)
	n.Register(p)
	if n.virtual == nil {
		n.virtual = map[int32][]int32{}
	}
	n.virtual[base] = append(n.virtual[base], p)
	return p
}

// Base returns the port that a virtual port is at, and any other port itself.
func (n *Subnet) Base(p int32) int32 {
	if n.Ports[p].Index != 0 {
		return n.Ports[p].Base
	}
	return p
}

// VirtualPorts returns the virtual ports of an end port.
func (n *Subnet) VirtualPorts(base int32) []int32 { return n.virtual[base] }

package qos

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
)

// RoCE is how RoCE packets are found in a table of applications: v1 by its EtherType, v2 by its UDP port.
type RoCE struct {
	V1   bool
	Port uint16
}

const typeRoCEv1 = 0x8915

// Marking is how a port gives what it sends a priority and marks of it (WinOF-2 Ethernet b, DSCP; WinOF 5.50, 4.1.11). The zero value
// leaves what programs choose.
type Marking struct {
	Policies Policies
	// Applications are the operative ones.
	Applications []Application
	// ByDSCP gives packets that have no priority that of their DSCP (DscpBasedEtsEnabled, or RxTrustedState 2).
	ByDSCP bool
	// Default is the priority of what has none (DefaultUntaggedPriority).
	Default uint8
	// Own is the priority of an interface in a VLAN, for RDMA packets that nothing else gives one, and which then are tagged with it
	// whatever Tags says (WinOF 5.50, 4.1.6.5: Vlan Priority); 0: it has none.
	Own uint8
	// Tags says that frames carry their priority in a tag (*PriorityVLANTag), and Bare that frames without a VLAN do not
	// (TxUntagPriorityTag).
	Tags, Bare bool
	// Marks says that RDMA packets have the DSCP of their priority by Table, if their program has chosen none (PriorityToDscpMappingTable).
	Marks bool
	// MarksPaused says that it is so while Paused is set: priorities are paused on their own.
	MarksPaused, Paused bool
	// Whole says that the whole link is paused: RDMA packets then have the DSCP Global, where they would have one of Table, or where
	// MarksPaused says so (DscpForGlobalFlowControl). While Paused is set it is not.
	Whole  bool
	Global uint8
	Table  [Priorities]uint8
}

// Mark is how packets leave.
type Mark struct {
	Priority uint8
	// Class is the traffic class, with the program's ECN bits.
	Class uint8
	// Tagged says that a tag with the priority is due, in a VLAN or without one.
	Tagged bool
}

// RDMA returns how packets of an RDMA flow leave whose program has chosen a service level and a traffic class, 0 for none. port is
// that of the connection; 0: there is none. What its program has chosen comes first, then policies, then applications.
func (m *Marking) RDMA(kind RoCE, port uint16, sl, class uint8, inVLAN bool) Mark {
	const ecn = 3
	x := Mark{Priority: sl, Class: class}
	named := sl != 0
	if !named && m.ByDSCP && class > ecn {
		x.Priority, named = OfDSCP(class>>2), true
	}
	if p := m.Policies.RDMA(port); p != nil {
		if !named && p.Priority >= 0 {
			x.Priority, named = uint8(p.Priority), true
		}
		if class <= ecn && p.DSCP >= 0 {
			x.Class |= uint8(p.DSCP) << 2
		}
	}
	if !named {
		x.Priority, named = m.application(kind, class>>2)
	}
	own := !named && m.Own != 0
	if own {
		x.Priority = m.Own
	}
	if whole := m.Whole && !m.Paused; x.Class <= ecn && (m.Marks || m.MarksPaused && (m.Paused || whole)) {
		dscp := m.Table[x.Priority]
		if whole {
			dscp = m.Global
		}
		x.Class |= dscp << 2
	}
	x.Tagged = own || named && m.Tags && (inVLAN || !m.Bare)
	return x
}

// Flow is a packet of a host, as far as its priority depends on it. To is invalid if it is no IP packet.
type Flow struct {
	Type     uint16 // of the frame
	To       netip.Addr
	Protocol uint8
	From     uint16 // ports, 0 without
	Port     uint16
	Class    uint8 // type of service, or traffic class
}

// FlowOf returns what the priority of a frame that begins with b depends on.
func FlowOf(h *eth.Headers, b []byte) Flow {
	x := Flow{Type: uint16(h.Type)}
	if h.Version == 0 {
		return x
	}
	ip := b[h.Network:]
	if x.Protocol = h.Protocol; h.Version == 4 {
		x.To, x.Class = netip.AddrFrom4([4]byte(ip[16:])), ip[1]
	} else {
		x.To, x.Class = netip.AddrFrom16([16]byte(ip[24:])), ip[0]<<4|ip[1]>>4
	}
	if h.Data != 0 {
		x.From, x.Port = binary.BigEndian.Uint16(b[h.Transport:]), binary.BigEndian.Uint16(b[h.Transport+2:])
	}
	return x
}

// Frame returns the priority of a frame that says none: by a policy, by the table of applications or, if that is to be, by its DSCP.
// named is false if it has none of these; then it is the default.
func (m *Marking) Frame(f *Flow) (priority uint8, named bool) {
	if p := m.Policies.Flow(f.Protocol, f.To, f.Port); p != nil && p.Priority >= 0 {
		return uint8(p.Priority), true
	}
	for _, a := range m.Applications {
		ports := f.From == a.Protocol || f.Port == a.Protocol
		found := false
		switch a.Selector {
		case EtherType:
			found = a.Protocol == f.Type
		case TCP:
			found = f.Protocol == eth.ProtocolTCP && ports
		case UDP:
			found = f.Protocol == eth.ProtocolUDP && ports
		case Port:
			found = (f.Protocol == eth.ProtocolTCP || f.Protocol == eth.ProtocolUDP) && ports
		case DSCP:
			found = f.To.IsValid() && a.Protocol == uint16(f.Class>>2)
		}
		if found {
			priority, named = max(priority, a.Priority), true
		}
	}
	switch {
	case named:
		return priority, true
	case m.ByDSCP && f.To.IsValid():
		return f.Class >> 5, true
	}
	return m.Default, false
}

// Idle reports whether frames of hosts leave as they would without it.
func (m *Marking) Idle() bool {
	return len(m.Policies) == 0 && len(m.Applications) == 0 && !m.ByDSCP && m.Default == 0 && !m.Bare
}

// application returns the priority of RoCE by the table of applications: the highest of the entries for it. named is false if there
// is none; then it is the default.
func (m *Marking) application(kind RoCE, dscp uint8) (priority uint8, named bool) {
	for _, a := range m.Applications {
		found := false
		switch a.Selector {
		case EtherType:
			found = kind.V1 && a.Protocol == typeRoCEv1
		case UDP, Port:
			found = !kind.V1 && a.Protocol == kind.Port
		case DSCP:
			found = dscp != 0 && a.Protocol == uint16(dscp)
		}
		if found {
			priority, named = max(priority, a.Priority), true
		}
	}
	if !named {
		return m.Default, false
	}
	return priority, true
}

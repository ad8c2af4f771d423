package subnet

import (
	"slices"

	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Virtualization says what a manager does about virtual ports: those of virtual functions with LIDs of their own, by the attributes of
// NVIDIA's devices. The values are those of virt_enabled in the options file of NVIDIA's OpenSM, which WinOF-2 24.4, Configuring IPoIB
// in SR-IOV, calls virt_enable.
type Virtualization uint8

// The manager leaves them alone, turns them off, or enables them: it gives them LIDs, P_Keys and routes, and activates them.
const (
	VirtualIgnore Virtualization = iota
	VirtualDisable
	VirtualEnable
)

// mostVPorts is how many virtual ports of a port are looked at.
const mostVPorts = 1024

// virtual reads the virtual ports of all ports that can have them, if the manager is to know of them, and decides then.
func (s *SM) virtual() {
	if s.cfg.Virtual == VirtualIgnore {
		s.decide()
		return
	}
	s.stage = stageVirtual
	for i := range s.cur.Ports {
		p := int32(i)
		port := &s.cur.Ports[p]
		if !port.Reach || !port.Known || s.cur.Nodes[port.Node].Info.NodeType != mad.NodeCA {
			continue
		}
		switch can, known := s.canVirtual[port.GUID]; {
		case !known:
			s.x.push(work{at: p, attr: mad.AttrGeneralInfo, mod: mad.GeneralInfoCapabilities})
		case can:
			s.x.push(work{at: p, attr: mad.AttrVirtualizationInfo})
		}
	}
}

// onVirtual handles a response while virtual ports are read.
func (s *SM) onVirtual(w work, smp *mad.SMP) {
	n := s.cur
	switch w.attr {
	case mad.AttrGeneralInfo:
		g, err := mad.ParseGeneralInfo(smp.Data[:])
		can := err == nil && g.Has(mad.CapVirtualization)
		if s.canVirtual[n.Ports[w.at].GUID] = can; can {
			s.x.push(work{at: w.at, attr: mad.AttrVirtualizationInfo})
		}
	case mad.AttrVirtualizationInfo:
		if i, err := mad.ParseVirtualizationInfo(smp.Data[:]); err == nil {
			if s.cfg.Virtual == VirtualEnable && !i.Enable {
				s.watchPort(n.Ports[w.at].GUID) // until now it may not have known whom to tell
			}
			s.lookedAt(n.Ports[w.at].GUID, i.StateChange)
			s.onVirtualization(w.at, &i)
		}
	case mad.AttrVPortState:
		states, err := mad.ParseVPortStates(smp.Data[:])
		for i, state := range states {
			if index := int(w.mod)*mad.VPortsInBlock + i; err == nil && index > 0 && state >= mad.PortInit && state <= mad.PortActive {
				s.x.push(work{at: w.at, attr: mad.AttrVPortInfo, mod: uint32(index)})
			}
		}
	case mad.AttrVPortInfo:
		if i, err := mad.ParseVPortInfo(smp.Data[:]); err == nil && len(n.VirtualPorts(w.at)) < mostVPorts {
			s.addVirtual(w.at, uint16(w.mod), &i)
		}
	case mad.AttrVNodeInfo:
		if i, err := mad.ParseVNodeInfo(smp.Data[:]); err == nil {
			n.Ports[w.at].Cap = min(max(1, int(i.PartitionCap)), len(mad.PKeyTable{}))
		}
	case mad.AttrVPortPKeyTable:
		if t, err := mad.ParsePKeyTable(smp.Data[:]); err == nil {
			n.Ports[w.at].PKeys = slices.Clone(t[:])
		}
	}
}

// onVirtualization turns virtual ports on or off at a port, or reads which there are.
func (s *SM) onVirtualization(p int32, i *mad.VirtualizationInfo) {
	want := s.cfg.Virtual == VirtualEnable
	switch {
	case i.Enable != want || want && i.StateChange:
		s.x.push(work{at: p, attr: mad.AttrVirtualizationInfo, set: true})
	case want:
		for block := range uint32(min(i.Top, mostVPorts))/mad.VPortsInBlock + 1 {
			s.x.push(work{at: p, attr: mad.AttrVPortState, mod: block})
		}
	}
}

// addVirtual adds a virtual port to the subnet, and reads the rest about it.
func (s *SM) addVirtual(base int32, index uint16, i *mad.VPortInfo) {
	n := s.cur
	if i.GUID == 0 || i.State < mad.PortInit || i.State > mad.PortActive {
		return
	}
	if other := n.EndPortOfGUID(i.GUID); other != topology.None {
		s.problem("duplicate GUID: virtual port %d of %s has port GUID %#016x, and so has %s: the former is ignored", index, n.Name(base),
			i.GUID, n.Name(other))
		return
	}
	p := n.AddVirtual(base, index, i.GUID, i.LID, i.State, !i.LIDRequired)
	s.x.push(work{at: p, attr: mad.AttrVNodeInfo, mod: uint32(index)})
	s.x.push(work{at: p, attr: mad.AttrVPortPKeyTable, mod: mad.OfVPort(index, 0)})
}

// notVirtual handles a request of GeneralInfo that failed: the port has no virtual ports. One that has not answered is asked again in
// the next sweep.
func (s *SM) notVirtual(w work, refused bool) {
	if refused {
		s.canVirtual[s.cur.Ports[w.at].GUID] = false
	}
}

// setUpVirtual sets what differs of a virtual port, and arms it.
func (s *SM) setUpVirtual(p int32) {
	port := &s.cur.Ports[p]
	if port.PKeys != nil {
		t, fits := partition.Fit(port.PKeys, s.keysOf(p), false, port.Cap)
		if !fits {
			s.problem("%s has room for %d P_Keys, it is a member of more partitions", s.cur.Name(p), port.Cap)
		}
		for len(t) < len(mad.PKeyTable{}) {
			t = append(t, 0)
		}
		if !slices.Equal(t, port.PKeys) {
			s.x.push(work{at: p, attr: mad.AttrVPortPKeyTable, mod: mad.OfVPort(port.Index, 0), set: true})
		}
		port.PKeys = t
	}
	if port.State == mad.PortInit || port.Info.LID != s.wantLID[p] && !port.Shares || s.tellVirtual(p) {
		s.x.push(work{at: p, attr: mad.AttrVPortInfo, mod: uint32(port.Index), set: true})
	}
}

// tellVirtual reports whether the clients of a virtual port are to reregister.
func (s *SM) tellVirtual(p int32) bool {
	return s.reregister && !s.cfg.NoReregister && s.cur.Ports[p].State == mad.PortActive
}

// activateVirtual activates a virtual port that is armed.
func (s *SM) activateVirtual(p int32) {
	if port := &s.cur.Ports[p]; port.State == mad.PortArmed {
		s.x.push(work{at: p, attr: mad.AttrVPortInfo, mod: uint32(port.Index), set: true, kind: kindActivate})
	}
}

// fillVirtual writes the attribute of a Set about virtual ports.
func (s *SM) fillVirtual(w *work, smp *mad.SMP) {
	port := &s.cur.Ports[w.at]
	switch w.attr {
	case mad.AttrVirtualizationInfo:
		i := mad.VirtualizationInfo{Enable: s.cfg.Virtual == VirtualEnable, StateChange: true}
		i.Append(smp.Data[:0])
	case mad.AttrVPortInfo:
		i := mad.VPortInfo{LIDRequired: !port.Shares, GUID: port.GUID, Reregister: s.tellVirtual(w.at)}
		if !port.Shares {
			i.LID = s.wantLID[w.at]
		}
		if port.State == mad.PortInit {
			i.State = mad.PortArmed
		}
		if w.kind == kindActivate {
			i.State, i.Reregister = mad.PortActive, s.reregister && !s.cfg.NoReregister
		}
		i.Append(smp.Data[:0])
	case mad.AttrVPortPKeyTable:
		var t mad.PKeyTable
		copy(t[:], port.PKeys)
		t.Append(smp.Data[:0])
	}
}

// doneVirtual handles the response to a Set about virtual ports.
func (s *SM) doneVirtual(w work, smp *mad.SMP) {
	port := &s.cur.Ports[w.at]
	switch w.attr {
	case mad.AttrVirtualizationInfo:
		i, err := mad.ParseVirtualizationInfo(smp.Data[:])
		if err != nil {
			return
		}
		if i.Enable != (s.cfg.Virtual == VirtualEnable) {
			s.failures++
			s.problem("%s does not let its virtual ports be enabled or disabled", s.cur.Name(w.at))
			return
		}
		i.StateChange = false // what has changed since is a change for the next sweep
		s.onVirtualization(w.at, &i)
	case mad.AttrVPortInfo:
		i, err := mad.ParseVPortInfo(smp.Data[:])
		if err != nil {
			return
		}
		if !port.Shares && i.LID != s.wantLID[w.at] {
			s.failures++
			s.problem("virtual port %d of %s was given LID %d and has %d", port.Index, s.cur.Name(w.at), s.wantLID[w.at], i.LID)
		}
		if port.State = i.State; !port.Shares {
			port.Info.LID = i.LID
		}
	}
}

// keysBehind returns the P_Keys of an end port and its virtual ports, for a switch that checks their packets.
func (s *SM) keysBehind(p int32) []ib.PKey {
	keys := s.keysOf(p)
	if p == topology.None {
		return keys
	}
	for _, v := range s.cur.VirtualPorts(p) {
		for _, k := range s.keysOf(v) {
			if !slices.Contains(keys, k) {
				keys = append(slices.Clip(keys), k)
			}
		}
	}
	return keys
}

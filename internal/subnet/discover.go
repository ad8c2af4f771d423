package subnet

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// maxNodes is the number of nodes above which a subnet is considered faulty.
const maxNodes = 1 << 17

// maxSubnetPorts limits the ports of a subnet, so that a lying node cannot exhaust the memory.
const maxSubnetPorts = 1 << 20

// maxPKeyBlocks limits how much of a partition table is read: 1,024 entries.
const maxPKeyBlocks = 32

// discover begins a thorough sweep: everything is discovered anew. A sweep caused by a link that came up
// or went down skips what cannot have changed: the ports of switches that report no port state change (IBA
// 14.2.5.4) with their neighbours, node descriptions, and the P_Keys of ports that are active with their
// LIDs. Nobody else sets those while this manager is master. This requires that the manager was also
// master in the preceding sweep, because there it cleared the switches' change flags before it read the
// ports.
func (s *SM) discover() {
	s.x.clear()
	s.past = nil
	if s.state == mad.SMMaster && s.watched && s.live == s.cur && !s.whole && !s.cfg.HeavySweeps && s.failures == 0 {
		s.past = s.live
	}
	s.watched = s.state == mad.SMMaster
	s.stage, s.heavy, s.whole, s.sweepAt, s.failures = stageDiscover, false, false, clock.Never, 0
	s.cur = topology.New()
	s.asleep = nil
	clear(s.others)
	s.x.push(work{at: topology.None, attr: mad.AttrNodeInfo})
}

// handle handles the response to a request.
func (s *SM) handle(w work, smp *mad.SMP) {
	switch {
	case w.attr == mad.AttrSMInfo:
		s.onSMInfo(w, smp)
	case w.set:
		s.done(w, smp)
	case s.stage == stageDiscover:
		s.found(w, smp)
	case s.stage == stageInherit:
		if t, err := mad.ParseMulticastForwardingTable(smp.Data[:]); err == nil {
			s.onGroups(w, t)
		}
	case s.stage == stageVirtual:
		s.onVirtual(w, smp)
	case s.stage == stageLight:
		s.onLook(w, smp)
	case s.stage == stageWatch:
		s.onWatch(w, smp)
	}
}

// found handles a response during discovery.
func (s *SM) found(w work, smp *mad.SMP) {
	switch w.attr {
	case mad.AttrNodeInfo:
		info, err := mad.ParseNodeInfo(smp.Data[:])
		if err == nil {
			s.arrived(w.at, info)
		}
	case mad.AttrNodeDescription:
		s.cur.Nodes[s.cur.Ports[w.at].Node].Desc = mad.NodeDescription(smp.Data)
	case mad.AttrSwitchInfo:
		if info, err := mad.ParseSwitchInfo(smp.Data[:]); err == nil {
			s.onSwitchInfo(w, &info)
		}
	case mad.AttrPortInfo:
		if info, err := mad.ParsePortInfo(smp.Data[:]); err == nil {
			s.onPortInfo(w, info)
		}
	case mad.AttrPKeyTable:
		if t, err := mad.ParsePKeyTable(smp.Data[:]); err == nil {
			s.onPKeys(w, t)
		}
	}
}

// arrived handles the NodeInfo of the node behind port u, or of the manager's own node.
func (s *SM) arrived(u int32, info mad.NodeInfo) {
	n := s.cur
	if why := impossible(&info, u != topology.None); why != "" {
		if u == topology.None {
			s.say(EventRefused, "the node of this port says of itself that %s", why)
		} else {
			s.problem("the node behind %s says of itself that %s: it is ignored", n.Name(u), why)
		}
		return
	}
	i := n.NodeOfGUID(info.NodeGUID)
	known := i != topology.None
	if known && (n.Nodes[i].Info.NodeType != info.NodeType || n.Nodes[i].Info.NumPorts != info.NumPorts) {
		s.problem("duplicate GUID: the node behind %s has node GUID %#016x, and so has a different one at %s: it is ignored",
			n.Name(u), info.NodeGUID, n.Name(s.wayTo(i)))
		return
	}
	if !known {
		if len(n.Nodes) >= maxNodes || len(n.Ports)+int(info.NumPorts) >= maxSubnetPorts {
			s.problem("the node behind %s is one too many: a subnet can have %d nodes with %d ports", n.Name(u), maxNodes, maxSubnetPorts)
			return
		}
		i = n.Add(info)
	}
	p := n.Nodes[i].First + int32(info.LocalPortNum)
	if u != topology.None {
		n.Ports[u].Peer = p
	}
	e := n.Entry(p)
	if u == topology.None {
		n.Self, s.guid = e, info.PortGUID
	}
	if n.Ports[e].Reach {
		return
	}
	n.Ports[e].Reach, n.Ports[e].From, n.Ports[e].GUID = true, u, info.PortGUID
	if u != topology.None {
		n.Ports[e].Hops = n.Ports[n.Entry(u)].Hops + 1
	}
	if other := n.EndPortOfGUID(info.PortGUID); other != topology.None {
		s.problem("duplicate GUID: %s and %s both have port GUID %#016x: the latter is ignored", n.Name(other), n.Name(e), info.PortGUID)
		n.Ports[e].Reach = false
		return
	}
	n.Register(e)
	s.ask(e, i, !known)
}

// impossible says what is impossible in a NodeInfo, if anything.
func impossible(i *mad.NodeInfo, beyond bool) string {
	switch {
	case i.NodeType < mad.NodeCA || i.NodeType > mad.NodeRouter:
		return "it is of " + i.NodeType.String() + ", want 1 to 3"
	case i.NumPorts == 0 || i.NumPorts > routing.MaxPorts:
		return "it has a number of ports that is not 1 to 254"
	case i.LocalPortNum > i.NumPorts || i.LocalPortNum == 0 && (beyond || i.NodeType != mad.NodeSwitch):
		return "the request came by a port that it does not have"
	case i.NodeGUID == 0 || i.PortGUID == 0:
		return "its GUID is 0"
	}
	return ""
}

// wayTo returns a port of a node that the manager can reach.
func (s *SM) wayTo(node int32) int32 {
	n := s.cur
	for p := n.Nodes[node].First; p <= n.Nodes[node].First+int32(n.Nodes[node].Info.NumPorts); p++ {
		if n.Ports[p].Reach {
			return p
		}
	}
	return n.Nodes[node].First
}

// ask requests all that is needed from a node, or from another port of a known adapter.
func (s *SM) ask(e, node int32, fresh bool) {
	n := s.cur
	if old := s.past.Same(&n.Nodes[node].Info); fresh && old != nil {
		n.Nodes[node].Desc = old.Desc
	} else if fresh {
		s.x.push(work{at: e, attr: mad.AttrNodeDescription})
	}
	if n.Nodes[node].Switch == topology.None {
		s.x.push(work{at: e, attr: mad.AttrPortInfo, mod: uint32(n.Ports[e].Num)})
		return
	}
	s.x.push(work{at: e, attr: mad.AttrSwitchInfo})
}

// onSwitchInfo continues with a switch's ports. It first clears the switch's change flag, so that no later
// change goes unnoticed.
func (s *SM) onSwitchInfo(w work, info *mad.SwitchInfo) {
	node := &s.cur.Nodes[s.cur.Ports[w.at].Node]
	if node.SwInfo != nil {
		return
	}
	node.SwInfo = info
	if info.PortStateChange && s.state == mad.SMMaster {
		s.x.push(work{at: w.at, attr: mad.AttrSwitchInfo, set: true})
	}
	old := s.past.Same(&node.Info)
	for p := range uint32(node.Info.NumPorts) + 1 { // node becomes invalid when another node is found
		if p > 0 && old != nil && !info.PortStateChange && s.past.Ports[old.First+int32(p)].Known {
			s.onPortInfo(work{at: w.at, attr: mad.AttrPortInfo, mod: p, kind: kindPast}, s.past.Ports[old.First+int32(p)].Info)
			continue
		}
		s.x.push(work{at: w.at, attr: mad.AttrPortInfo, mod: p})
	}
}

// asBefore returns the P_Keys of an end port that is in the state in which it was left, or nil if that is
// not certain.
func (s *SM) asBefore(p int32) []ib.PKey {
	if s.past == nil {
		return nil
	}
	port := &s.cur.Ports[p]
	q := s.past.EndPortOfGUID(port.GUID)
	if q == topology.None || s.past.Ports[q].Info.LID != port.Info.LID || port.Info.LID == 0 || port.Info.PortState != mad.PortActive ||
		s.past.Ports[q].Info.PortState != mad.PortActive {
		return nil
	}
	return s.past.Ports[q].PKeys
}

func (s *SM) onPortInfo(w work, info mad.PortInfo) {
	n := s.cur
	p := n.Nodes[n.Ports[w.at].Node].First + int32(w.mod)
	port := &n.Ports[p]
	port.Info, port.Known = info, true
	if n.EndPort(p) {
		if port.PKeys = s.asBefore(p); port.PKeys == nil {
			s.x.push(work{at: p, attr: mad.AttrPKeyTable})
		}
		if info.CapabilityMask&mad.CapIsSM != 0 && p != n.Self && !s.cfg.IgnoreOthers {
			s.x.push(work{at: p, attr: mad.AttrSMInfo})
		}
	}
	if port.Num == 0 || !topology.Linked(&info) || !n.IsSwitch(p) && p != n.Self {
		return
	}
	if n.Ports[n.Entry(p)].Hops == mad.MaxHops {
		s.problem("what is behind %s is farther away than the %d hops that a directed route can have", n.Name(p), mad.MaxHops)
		return
	}
	if w.kind == kindPast {
		if behind, known := s.behind(p); known {
			s.arrived(p, behind)
			return
		}
	}
	s.x.push(work{at: p, attr: mad.AttrNodeInfo, beyond: true})
}

// behind returns the NodeInfo that an earlier sweep found at the other end of a link; false: it must be
// requested.
func (s *SM) behind(p int32) (mad.NodeInfo, bool) {
	n := s.cur
	old := s.past.Same(&n.Nodes[n.Ports[p].Node].Info)
	if old == nil {
		return mad.NodeInfo{}, false
	}
	q := s.past.Ports[old.First+int32(n.Ports[p].Num)].Peer
	if q == topology.None || !s.past.Ports[s.past.Entry(q)].Reach {
		return mad.NodeInfo{}, false
	}
	info := s.past.Nodes[s.past.Ports[q].Node].Info
	info.LocalPortNum, info.PortGUID = s.past.Ports[q].Num, s.past.Ports[s.past.Entry(q)].GUID
	return info, true
}

// onPKeys handles a block of a partition table. Tables are filled from the beginning, so the next block is
// needed only if this one has no free entry.
func (s *SM) onPKeys(w work, t mad.PKeyTable) {
	port := &s.cur.Ports[w.at]
	port.PKeys = append(port.PKeys, t[:]...)
	for _, k := range t {
		if k&0x7fff == 0 {
			return
		}
	}
	blocks := (int(s.cur.Nodes[port.Node].Info.PartitionCap) + len(t) - 1) / len(t)
	switch next := int(w.mod) + 1; {
	case next >= blocks:
	case next >= maxPKeyBlocks:
		s.problem("%s has a partition table with more than %d entries, the rest is not looked at", s.cur.Name(w.at), maxPKeyBlocks*len(t))
	default:
		s.x.push(work{at: w.at, attr: mad.AttrPKeyTable, mod: uint32(next)})
	}
}

// failed handles a request that failed: smp is the response that refuses it, or nil if there was none.
func (s *SM) failed(w work, smp *mad.SMP) {
	n := s.cur
	switch {
	case s.polled(w):
		return
	case s.stage == stageLight:
		if !w.beyond { // a node is gone; one that was silent before may stay silent
			s.heavy, s.whole = true, true
		}
		return
	case s.stage == stageWatch:
		s.notWatched(w)
		return
	case s.stage == stageInherit && !w.set:
		return // the contents are unknown and will be overwritten
	case w.at == topology.None:
		s.say(EventRefused, "this port does not answer")
		return
	case w.beyond:
		s.asleep = append(s.asleep, w.at)
		s.problem("the link of %s is up, but the node behind it does not answer", n.Name(w.at))
		return
	case w.attr == mad.AttrSMInfo:
		return // it is gone; the next sweep will notice
	case w.attr == mad.AttrGeneralInfo:
		s.notVirtual(w, smp != nil)
		return
	}
	s.failures++
	what := "does not answer"
	if smp != nil {
		what = "refuses"
	}
	verb := "Get"
	if w.set {
		verb = "Set"
	}
	status := ""
	if smp != nil {
		status = ", status " + hex16(smp.StatusCode())
	}
	s.problem("%s %s %s(%s) with modifier %#x%s", n.Name(w.at), what, verb, attributeName(w.attr), w.mod, status)
	if w.set {
		s.unset(w)
	}
}

func hex16(v uint16) string {
	const digits = "0123456789abcdef"
	return "0x" + string([]byte{digits[v>>12], digits[v>>8&15], digits[v>>4&15], digits[v&15]})
}

// attributeName returns the specification's name of a subnet management attribute.
func attributeName(a uint16) string {
	switch a {
	case mad.AttrNodeDescription:
		return "NodeDescription"
	case mad.AttrNodeInfo:
		return "NodeInfo"
	case mad.AttrSwitchInfo:
		return "SwitchInfo"
	case mad.AttrGUIDInfo:
		return "GUIDInfo"
	case mad.AttrPortInfo:
		return "PortInfo"
	case mad.AttrPKeyTable:
		return "P_KeyTable"
	case mad.AttrSLtoVLMappingTable:
		return "SLtoVLMappingTable"
	case mad.AttrVLArbitrationTable:
		return "VLArbitrationTable"
	case mad.AttrLinearForwardingTable:
		return "LinearForwardingTable"
	case mad.AttrMulticastForwardingTable:
		return "MulticastForwardingTable"
	case mad.AttrSMInfo:
		return "SMInfo"
	case mad.AttrVirtualizationInfo:
		return "VirtualizationInfo"
	case mad.AttrVPortState:
		return "VPortState"
	case mad.AttrVPortInfo:
		return "VPortInfo"
	case mad.AttrVNodeInfo:
		return "VNodeInfo"
	case mad.AttrVPortPKeyTable:
		return "VPortPKeyTable"
	}
	return "attribute " + hex16(a)
}

// pair turns what each port saw at its other end into links. A link requires that both ends see each
// other; adapters do not look, so there the first that saw one counts. Anything else means two nodes with
// one GUID, a port connected to itself, or a cable moved a moment ago, and is not used.
func (s *SM) pair() {
	n := s.cur
	var bad []int32 // cleared after all have been compared
	for i := range n.Ports {
		p := int32(i)
		q := n.Ports[p].Peer
		if q == topology.None || !n.IsSwitch(p) && p != n.Self {
			continue
		}
		switch {
		case p == q:
			s.problem("%s is linked to itself: the link is not used", n.Name(p))
			bad = append(bad, p)
		case !n.IsSwitch(q) && q != n.Self:
			if n.Ports[q].Peer != topology.None && n.Ports[q].Peer != p || n.Ports[q].From != p {
				s.problem("duplicate GUID: %s and %s both lead to a node with GUID %#016x and port %d: the former is not used",
					n.Name(p), n.Name(n.Ports[q].From), n.Nodes[n.Ports[q].Node].Info.NodeGUID, n.Ports[q].Num)
				bad = append(bad, p)
				continue
			}
			n.Ports[q].Peer = p
		case n.Ports[q].Peer != p:
			s.problem("duplicate GUID: %s leads to a node with GUID %#016x and port %d, but that one leads to %s: the link is not used",
				n.Name(p), n.Nodes[n.Ports[q].Node].Info.NodeGUID, n.Ports[q].Num, n.Name(n.Ports[q].Peer))
			bad = append(bad, p)
		}
	}
	for _, p := range bad {
		n.Ports[p].Peer = topology.None
	}
}

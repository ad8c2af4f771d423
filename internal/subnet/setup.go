package subnet

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet/administration"
	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Kinds of work with the same attribute.
const (
	kindPlain uint8 = iota
	kindActivate
	kindPoll
	kindHandover
	kindPast // not a request: the result of an earlier one
)

// tables is what is known about a switch's tables.
type tables struct {
	lft   []byte // forwarding table; nil: not known
	mft   map[uint32]mad.MulticastForwardingTable
	pkeys map[uint8][]ib.PKey // by port
	sl    *mad.SLtoVLMappingTable
	more  map[uint32]bool // the block after that one has been requested
	seen  bool            // in the current sweep
}

func newTables() *tables {
	return &tables{mft: map[uint32]mad.MulticastForwardingTable{}, pkeys: map[uint8][]ib.PKey{}}
}

// retreat ends a sweep that cannot continue; the next one is thorough.
func (s *SM) retreat() {
	s.x.clear()
	s.stage, s.heavy, s.whole = stageIdle, true, true
	s.sweepAt = s.now.Add(s.pause())
}

// pause returns the time until a failed sweep is retried.
func (s *SM) pause() time.Duration {
	if s.cfg.Sweep > 0 {
		return s.cfg.Sweep
	}
	return DefaultPoll
}

// discovered continues when everything that can be reached has answered.
func (s *SM) discovered() {
	n := s.cur
	if n.Self == topology.None || !n.Ports[n.Self].Known {
		s.say(EventRefused, "this port cannot be read")
		s.retreat()
		return
	}
	s.pair()
	if !s.elect() {
		return
	}
	s.recall()
	if s.inheriting {
		s.inherit()
		return
	}
	s.virtual()
}

// decide computes the wanted state of everything.
func (s *SM) decide() {
	given, err := s.assignLIDs()
	if err != nil {
		s.say(EventRefused, "%v", err)
		s.retreat()
		return
	}
	s.wantLID = given
	if err := s.route(); err != nil {
		s.say(EventRefused, "%v", err)
		s.retreat()
		return
	}
	s.takeKeys()
}

// setUp sets everything that differs from what is wanted, and arms the links.
func (s *SM) setUp() {
	s.stage = stageSetUp
	n := s.cur
	for _, t := range s.tables {
		t.seen = false
	}
	for _, node := range s.sws {
		s.setUpSwitch(node)
	}
	for guid, t := range s.tables {
		if !t.seen {
			delete(s.tables, guid)
		}
	}
	for i := range n.Ports {
		p := int32(i)
		if !n.Ports[p].Known {
			continue
		}
		if n.Ports[p].Index != 0 {
			s.setUpVirtual(p)
			continue
		}
		if _, changed := s.wanted(p); changed {
			s.x.push(work{at: s.askAt(p), attr: mad.AttrPortInfo, mod: s.portModifier(p), set: true})
		}
		s.setUpGUIDsOf(p)
		s.setUpKeys(p)
		s.setUpLanes(p)
	}
	s.setUpGroups()
}

// setUpSwitch writes the blocks of a forwarding table that differ.
func (s *SM) setUpSwitch(node int32) {
	nd := &s.cur.Nodes[node]
	guid := nd.Info.NodeGUID
	t := s.tables[guid]
	port0 := &s.cur.Ports[nd.First]
	if t == nil || nd.SwInfo == nil || !port0.Known || port0.Info.LID == 0 || s.routes.Top > 0 && nd.SwInfo.LinearFDBTop == 0 {
		t = newTables()
		s.tables[guid] = t // not known, or it has been reset
	}
	t.seen = true
	if nd.SwInfo == nil || !port0.Known {
		return
	}
	table := s.routes.Table(s.swOf[node])
	for b := 0; b*routing.BlockLen < len(table); b++ {
		block := table[b*routing.BlockLen : (b+1)*routing.BlockLen]
		if t.lft != nil && (b+1)*routing.BlockLen <= len(t.lft) &&
			string(t.lft[b*routing.BlockLen:(b+1)*routing.BlockLen]) == string(block) {
			continue
		}
		if b*routing.BlockLen >= int(nd.SwInfo.LinearFDBCap) {
			break
		}
		s.x.push(work{at: nd.First, attr: mad.AttrLinearForwardingTable, mod: uint32(b), set: true})
	}
	t.lft = table
	if int(nd.SwInfo.LinearFDBTop) != s.fdbTop(nd) || nd.SwInfo.LifeTimeValue != s.cfg.Limits.PacketLife ||
		nd.SwInfo.MulticastFDBTop != s.mftTop(nd) || nd.SwInfo.PortStateChange {
		s.x.push(work{at: nd.First, attr: mad.AttrSwitchInfo, set: true})
	}
}

func (s *SM) fdbTop(nd *topology.Node) int {
	return min(s.routes.Top, max(0, int(nd.SwInfo.LinearFDBCap)-1))
}

// mftTop returns the highest multicast LID that a switch is to look up: as many as it has room for.
func (s *SM) mftTop(nd *topology.Node) uint16 {
	if s.cfg.NoMulticast || nd.SwInfo.MulticastFDBCap == 0 ||
		s.cur.Ports[nd.First].Info.CapabilityMask&mad.CapIsMulticastFDBTopSupported == 0 {
		return nd.SwInfo.MulticastFDBTop
	}
	return uint16(min(int(administration.LastMLID), int(ib.LIDFirstMulticast)+int(nd.SwInfo.MulticastFDBCap)-1))
}

// fill writes the attribute of a Set; false: it is not needed after all.
func (s *SM) fill(w *work, smp *mad.SMP) bool {
	n := s.cur
	node := &n.Nodes[n.Ports[w.at].Node]
	switch w.attr {
	case mad.AttrPortInfo:
		p := node.First + int32(w.mod)
		d, changed := s.wanted(p)
		d.ClientReregister = s.tellClients(p)
		if w.kind == kindActivate {
			d.PortState, changed = mad.PortActive, true
			d.ClientReregister = s.reregister && !s.cfg.NoReregister && n.Ports[p].Reach &&
				d.CapabilityMask&mad.CapIsClientReregistrationSupported != 0
		}
		if !changed {
			return false
		}
		d.Append(smp.Data[:0])
	case mad.AttrSwitchInfo:
		d := *node.SwInfo
		if s.stage == stageSetUp {
			d.LinearFDBTop, d.LifeTimeValue, d.MulticastFDBTop = uint16(s.fdbTop(node)), s.cfg.Limits.PacketLife, s.mftTop(node)
		}
		d.Append(smp.Data[:0])
	case mad.AttrLinearForwardingTable:
		copy(smp.Data[:], s.tables[node.Info.NodeGUID].lft[int(w.mod)*routing.BlockLen:])
	case mad.AttrMulticastForwardingTable:
		t := s.tables[node.Info.NodeGUID].mft[w.mod]
		t.Append(smp.Data[:0])
	case mad.AttrGUIDInfo:
		t := s.sa.GUIDs(administration.GUIDBlock{Port: s.cur.Ports[w.at].GUID, Block: uint8(w.mod)})
		t.Append(smp.Data[:0])
	case mad.AttrPKeyTable:
		port := &n.Ports[w.at]
		if node.Switch != topology.None && w.mod>>16 != 0 {
			port = &n.Ports[node.First+int32(w.mod>>16)]
		}
		for i, k := range port.PKeys[int(w.mod&0xffff)*32:][:32] {
			smp.Data[2*i], smp.Data[2*i+1] = byte(k>>8), byte(k)
		}
	case mad.AttrSLtoVLMappingTable:
		t := s.slToVL(w)
		t.Append(smp.Data[:0])
	case mad.AttrVLArbitrationTable:
		t := s.arbitration(s.outPort(w), w.mod>>16)
		t.Append(smp.Data[:0])
	case mad.AttrSMInfo:
		i := s.smInfo()
		i.State = mad.SMMaster // both who hands over and who takes over speak as master
		i.Append(smp.Data[:0])
	case mad.AttrVirtualizationInfo, mad.AttrVPortInfo, mad.AttrVPortPKeyTable:
		s.fillVirtual(w, smp)
	}
	return true
}

// done handles the response to a Set.
func (s *SM) done(w work, smp *mad.SMP) {
	n := s.cur
	node := &n.Nodes[n.Ports[w.at].Node]
	switch w.attr {
	case mad.AttrPortInfo:
		p := node.First + int32(w.mod)
		info, err := mad.ParsePortInfo(smp.Data[:])
		if err != nil {
			return
		}
		want, _ := s.wanted(p)
		if n.Ports[p].Reach && (info.LID != want.LID || info.LMC != want.LMC) {
			s.failures++
			s.problem("%s was given LID %d and has %d", n.Name(p), want.LID, info.LID)
		}
		info.ClientReregister = false
		n.Ports[p].Info = info
	case mad.AttrSwitchInfo:
		if info, err := mad.ParseSwitchInfo(smp.Data[:]); err == nil {
			info.PortStateChange = false
			node.SwInfo = &info
		}
	case mad.AttrVirtualizationInfo, mad.AttrVPortInfo:
		s.doneVirtual(w, smp)
	}
}

// unset notes that a Set has failed, so that the node's state is unknown.
func (s *SM) unset(w work) {
	n := s.cur
	t := s.tables[n.Nodes[n.Ports[w.at].Node].Info.NodeGUID]
	if t == nil {
		return
	}
	switch w.attr {
	case mad.AttrLinearForwardingTable:
		t.lft = nil
	case mad.AttrMulticastForwardingTable:
		delete(t.mft, w.mod)
	case mad.AttrPKeyTable:
		delete(t.pkeys, uint8(w.mod>>16))
	case mad.AttrSLtoVLMappingTable:
		t.sl = nil
	}
}

// up ends a sweep: the subnet is as wanted, or the problems have been reported.
func (s *SM) up() {
	s.stage = stageIdle
	s.live = s.cur
	s.live.IndexLIDs()
	s.liveGraph, s.liveRoutes = s.graph, s.routes
	first := !s.firstDone
	s.firstDone, s.reregister = true, false
	s.actCount++
	if s.failures > 0 {
		s.say(EventNotice, "Errors during initialization: %d requests failed", s.failures)
		s.heavy, s.whole, s.sweepAt = true, true, s.now.Add(s.pause())
	} else {
		s.sweepAt = clock.Never
		if s.cfg.Sweep > 0 {
			s.sweepAt = s.now.Add(s.cfg.Sweep)
		}
		if s.unsettled {
			s.heavy, s.whole, s.sweepAt = true, true, s.now.Add(time.Second)
		} else if s.heavy { // a trap arrived meanwhile
			s.sweepAt = s.now
		}
	}
	s.sa.Up(s.now, s.live, administration.Routes{Routes: s.routes, SwitchOf: s.swOf})
	s.say(EventLIDs, "%d ports have LIDs", len(s.wantLID))
	if s.failures == 0 {
		if first {
			s.say(EventState, "Entering MASTER state")
		}
		s.say(EventUp, "SUBNET UP")
	}
}

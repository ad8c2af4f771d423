package subnet

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Kinds of work with the same attribute.
const (
	kindPlain uint8 = iota
	kindActivate
	kindPoll
	kindHandover
)

// Values that ports are given, those of OpenSM.
const (
	subnetTimeout = 18 // 4.096 us times 2 to this: a second
	hoqLife       = 18 // of ports to switches
	hoqLifeLeaf   = 16 // of ports to hosts
	vlStallCount  = 7
	packetLife    = 18
	maxVLs        = 5 // as PortInfo has it: 15 lanes
)

// tables is what a switch is known to have.
type tables struct {
	lft   []byte // the forwarding table, nil: not known
	mft   map[uint32]mad.MulticastForwardingTable
	pkeys map[uint8][]ib.PKey // by port
	sl    *mad.SLtoVLMappingTable
	seen  bool // in the sweep at hand
}

// retreat ends a sweep that cannot go on; the next one is thorough.
func (s *SM) retreat() {
	s.x.clear()
	s.stage, s.heavy = stageIdle, true
	s.sweepAt = s.now.Add(s.pause())
}

// pause is the time until a sweep that failed is tried again.
func (s *SM) pause() time.Duration {
	if s.cfg.Sweep > 0 {
		return s.cfg.Sweep
	}
	return DefaultPoll
}

// discovered goes on when all that can be reached has answered.
func (s *SM) discovered() {
	n := s.cur
	if n.Self == none || !n.Ports[n.Self].known {
		s.say(EventRefused, "this port cannot be read")
		s.retreat()
		return
	}
	s.pair()
	if !s.elect() {
		return
	}
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
	s.setUp()
}

// buildGraph makes the graph of the subnet: switches by node GUID, so that the same subnet has the same routes
// whatever the order in which it was found.
func (s *SM) buildGraph() *Graph {
	n := s.cur
	s.sws = slices.Clone(n.Switches)
	slices.SortFunc(s.sws, func(a, b int32) int {
		if n.Nodes[a].Info.NodeGUID < n.Nodes[b].Info.NodeGUID {
			return -1
		}
		return 1
	})
	s.swOf = make([]int32, len(n.Nodes))
	for i := range s.swOf {
		s.swOf[i] = none
	}
	guids, ports := make([]uint64, len(s.sws)), make([]uint8, len(s.sws))
	for i, node := range s.sws {
		s.swOf[node] = int32(i)
		guids[i], ports[i] = n.Nodes[node].Info.NodeGUID, n.Nodes[node].Info.NumPorts
	}
	g := NewGraph(guids, ports)
	for i := range n.Ports {
		a, b := int32(i), n.Ports[i].Peer
		if b > a && n.isSwitch(a) && n.isSwitch(b) {
			_ = g.Connect(s.swOf[n.Ports[a].Node], n.Ports[a].Num, s.swOf[n.Ports[b].Node], n.Ports[b].Num)
		}
	}
	targets := make([]Target, 0, len(s.wantLID))
	for p, lid := range s.wantLID {
		t := Target{LID: lid, Count: s.lidCount(p)}
		switch q := n.Ports[p].Peer; {
		case n.isSwitch(p):
			t.Switch = s.swOf[n.Ports[p].Node]
		case q != none && n.isSwitch(q):
			t.Switch, t.Port = s.swOf[n.Ports[q].Node], n.Ports[q].Num
		default:
			continue // the only other port, on a cable between two adapters
		}
		targets = append(targets, t)
	}
	slices.SortFunc(targets, func(a, b Target) int { return int(a.LID) - int(b.LID) })
	for _, t := range targets {
		_ = g.Attach(t)
	}
	return g
}

// route routes the subnet.
func (s *SM) route() error {
	g := s.buildGraph()
	o := Options{ConnectRoots: s.cfg.ConnectRoots, MaxLanes: s.lanes()}
	for _, guid := range s.cfg.Roots {
		if i, ok := s.cur.byNode[guid]; ok && s.swOf[i] != none {
			o.Roots = append(o.Roots, s.swOf[i])
		}
	}
	r, failed, err := Route(g, s.cfg.Engines, o)
	for _, f := range failed {
		s.problem("%v", f)
	}
	if err != nil {
		return err
	}
	if len(r.lft) > 0 && r.Top > 0 {
		for _, node := range s.sws {
			if info := s.cur.Nodes[node].SwInfo; info != nil && int(info.LinearFDBCap) <= r.Top {
				s.problem("%s has room for %d LIDs in its forwarding table, the highest LID is %d", s.cur.Name(s.cur.Nodes[node].First), info.LinearFDBCap, r.Top)
			}
		}
	}
	s.graph, s.routes = g, r
	s.say(EventRouted, "%d switches, %d end ports, highest LID %d, routed by %s, %d lanes", g.Switches(), len(s.wantLID), r.Top, r.Engine, r.Lanes)
	return nil
}

// lanes is how many data lanes every link between switches has.
func (s *SM) lanes() int {
	most := s.cfg.MaxLanes
	if most == 0 {
		most = 8
	}
	n := s.cur
	for i := range n.Ports {
		if q := n.Ports[i].Peer; q != none && n.isSwitch(int32(i)) && n.isSwitch(q) {
			most = min(most, dataLanes(n.Ports[i].Info.VLCap))
		}
	}
	return max(1, most)
}

// dataLanes is how many data lanes a VLCap or OperationalVLs stands for (IBA 14.2.5.6).
func dataLanes(vl uint8) int {
	switch vl {
	case 2:
		return 2
	case 3:
		return 4
	case 4:
		return 8
	case 5:
		return 15
	}
	return 1
}

// setUp asks for all that differs from what is wanted to be set, and makes links armed.
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
		if !n.Ports[p].known {
			continue
		}
		if _, changed := s.wanted(p); changed {
			s.x.push(work{at: s.askAt(p), attr: mad.AttrPortInfo, mod: s.portModifier(p), set: true})
		}
		s.setUpKeys(p)
		s.setUpLanes(p)
	}
	s.setUpGroups()
}

// askAt is the end port by which a port is managed: port 0 of its switch, or itself.
func (s *SM) askAt(p int32) int32 { return s.cur.entry(p) }

func (s *SM) portModifier(p int32) uint32 { return uint32(s.cur.Ports[p].Num) }

// setUpSwitch asks for the blocks of the forwarding table that differ.
func (s *SM) setUpSwitch(node int32) {
	nd := &s.cur.Nodes[node]
	guid := nd.Info.NodeGUID
	t := s.tables[guid]
	port0 := &s.cur.Ports[nd.First]
	if t == nil || nd.SwInfo == nil || !port0.known || port0.Info.LID == 0 || s.routes.Top > 0 && nd.SwInfo.LinearFDBTop == 0 {
		t = &tables{mft: map[uint32]mad.MulticastForwardingTable{}, pkeys: map[uint8][]ib.PKey{}}
		s.tables[guid] = t // not known, or it has been reset
	}
	t.seen = true
	if nd.SwInfo == nil || !port0.known {
		return
	}
	table := s.routes.Table(s.swOf[node])
	for b := 0; b*BlockLen < len(table); b++ {
		block := table[b*BlockLen : (b+1)*BlockLen]
		if t.lft != nil && (b+1)*BlockLen <= len(t.lft) && string(t.lft[b*BlockLen:(b+1)*BlockLen]) == string(block) {
			continue
		}
		if b*BlockLen >= int(nd.SwInfo.LinearFDBCap) {
			break
		}
		s.x.push(work{at: nd.First, attr: mad.AttrLinearForwardingTable, mod: uint32(b), set: true})
	}
	t.lft = table
	if int(nd.SwInfo.LinearFDBTop) != s.fdbTop(nd) || nd.SwInfo.LifeTimeValue != packetLife || nd.SwInfo.PortStateChange {
		s.x.push(work{at: nd.First, attr: mad.AttrSwitchInfo, set: true})
	}
}

func (s *SM) fdbTop(nd *Node) int { return min(s.routes.Top, max(0, int(nd.SwInfo.LinearFDBCap)-1)) }

// wanted is how a port is to be configured, and whether it has to be told.
func (s *SM) wanted(p int32) (d mad.PortInfo, changed bool) {
	n := s.cur
	port := &n.Ports[p]
	now := &port.Info
	d = *now
	d.PortState, d.PortPhysicalState, d.LinkDownDefaultState, d.ClientReregister = 0, 0, 0, false
	if port.reach {
		d.MKey, d.MKeyProtectBits, d.MKeyLeasePeriod = s.cfg.MKey, s.cfg.MKeyProtect, s.cfg.MKeyLease
		d.GIDPrefix, d.LID, d.MasterSMLID, d.MasterSMSL, d.SubnetTimeOut = s.cfg.Prefix, s.wantLID[p], s.wantLID[n.Self], s.cfg.SL, subnetTimeout
		if d.LMC = s.cfg.LMC; n.isSwitch(p) {
			d.LMC = 0
		}
	}
	if port.Num != 0 && port.Peer != none && n.Ports[port.Peer].known && linked(now) {
		s.wantedLink(p, &d)
	}
	compare := *now
	compare.PortState, compare.PortPhysicalState, compare.LinkDownDefaultState, compare.ClientReregister = 0, 0, 0, false
	return d, d != compare || s.tellClients(p)
}

// tellClients says whether the clients of a port are to subscribe and join again, since there is a new master.
func (s *SM) tellClients(p int32) bool {
	port := &s.cur.Ports[p]
	return s.reregister && port.reach && !s.cur.isSwitch(p) && port.Info.PortState == mad.PortActive &&
		port.Info.CapabilityMask&mad.CapIsClientReregistrationSupported != 0
}

// wantedLink is what both ends of a link have to agree on.
func (s *SM) wantedLink(p int32, d *mad.PortInfo) {
	n := s.cur
	here, there := &n.Ports[p].Info, &n.Ports[n.Ports[p].Peer].Info
	d.NeighborMTU = max(1, min(here.MTUCap, there.MTUCap))
	d.OperationalVLs = max(1, min(here.VLCap, there.VLCap, maxVLs))
	if n.isSwitch(p) {
		d.HOQLife, d.VLStallCount = hoqLife, vlStallCount
		if leaf := n.endPort(n.Ports[p].Peer); leaf {
			d.HOQLife = hoqLifeLeaf
			s.enforcement(p, d)
		}
	}
	if q := s.qos(); q != nil {
		d.VLHighLimit = q.HighLimit
	}
	if here.PortState == mad.PortInit {
		d.PortState = mad.PortArmed
	}
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
			d.ClientReregister = s.reregister && n.Ports[p].reach && d.CapabilityMask&mad.CapIsClientReregistrationSupported != 0
		}
		if !changed {
			return false
		}
		d.Append(smp.Data[:0])
	case mad.AttrSwitchInfo:
		d := *node.SwInfo
		if s.stage == stageSetUp {
			d.LinearFDBTop, d.LifeTimeValue = uint16(s.fdbTop(node)), packetLife
		}
		d.Append(smp.Data[:0])
	case mad.AttrLinearForwardingTable:
		copy(smp.Data[:], s.tables[node.Info.NodeGUID].lft[int(w.mod)*BlockLen:])
	case mad.AttrMulticastForwardingTable:
		t := s.tables[node.Info.NodeGUID].mft[w.mod]
		t.Append(smp.Data[:0])
	case mad.AttrPKeyTable:
		port := &n.Ports[w.at]
		if node.Switch != none && w.mod>>16 != 0 {
			port = &n.Ports[node.First+int32(w.mod>>16)]
		}
		for i, k := range port.PKeys[int(w.mod&0xffff)*32:][:32] {
			smp.Data[2*i], smp.Data[2*i+1] = byte(k>>8), byte(k)
		}
	case mad.AttrSLtoVLMappingTable:
		t := s.slToVL(w)
		t.Append(smp.Data[:0])
	case mad.AttrVLArbitrationTable:
		t := s.qos().arbitration(n, n.outPort(w), w.mod>>16)
		t.Append(smp.Data[:0])
	case mad.AttrSMInfo:
		i := s.smInfo()
		i.State = mad.SMMaster // who hands over, or takes over, is the master that speaks
		i.Append(smp.Data[:0])
	}
	return true
}

// done takes the answer to a Set.
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
		if n.Ports[p].reach && (info.LID != want.LID || info.LMC != want.LMC) {
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
	}
}

// unset notes that a Set has failed: what the node has is not known.
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

// activate lets packets through all links that are armed at both ends.
func (s *SM) activate() {
	s.stage = stageActivate
	n := s.cur
	for i := range n.Ports {
		p := int32(i)
		port := &n.Ports[p]
		if port.Num != 0 && port.known && port.Peer != none && port.Info.PortState == mad.PortArmed && n.Ports[port.Peer].Info.PortState >= mad.PortArmed {
			s.x.push(work{at: s.askAt(p), attr: mad.AttrPortInfo, mod: s.portModifier(p), set: true, kind: kindActivate})
		}
	}
}

// up ends a sweep: the subnet is as it should be, or what is wrong has been said.
func (s *SM) up() {
	s.stage = stageIdle
	old := s.live
	s.live = s.cur
	s.live.indexLIDs()
	s.paths = paths{s.graph, s.routes, s.swOf}
	first := !s.firstDone
	s.firstDone, s.reregister = true, false
	s.actCount++
	if s.failures > 0 {
		s.say(EventNotice, "Errors during initialization: %d requests failed", s.failures)
		s.heavy, s.sweepAt = true, s.now.Add(s.pause())
	} else {
		s.sweepAt = clock.Never
		if s.cfg.Sweep > 0 {
			s.sweepAt = s.now.Add(s.cfg.Sweep)
		}
		if s.unsettled {
			s.heavy, s.sweepAt = true, s.now.Add(time.Second)
		} else if s.heavy { // a trap came meanwhile
			s.sweepAt = s.now
		}
	}
	s.sa.changed(old, s.live)
	s.say(EventLIDs, "%d ports have LIDs", len(s.wantLID))
	if s.failures == 0 {
		if first {
			s.say(EventState, "Entering MASTER state")
		}
		s.say(EventUp, "SUBNET UP")
	}
}

// look asks whether something has changed, without asking everyone.
func (s *SM) look() {
	s.stage = stageLight
	s.x.push(work{at: s.cur.Self, attr: mad.AttrPortInfo, mod: uint32(s.cur.Ports[s.cur.Self].Num)})
	for _, node := range s.cur.Switches {
		s.x.push(work{at: s.cur.Nodes[node].First, attr: mad.AttrSwitchInfo})
	}
	for _, p := range s.asleep {
		s.x.push(work{at: p, attr: mad.AttrNodeInfo, beyond: true})
	}
}

// onLook takes the answers to look.
func (s *SM) onLook(w work, smp *mad.SMP) {
	switch w.attr {
	case mad.AttrSwitchInfo:
		if i, err := mad.ParseSwitchInfo(smp.Data[:]); err != nil || i.PortStateChange {
			s.heavy = true
		}
	case mad.AttrPortInfo:
		if i, err := mad.ParsePortInfo(smp.Data[:]); err != nil || i.PortState != s.cur.Ports[w.at].Info.PortState || i.LID != s.cur.Ports[w.at].Info.LID {
			s.heavy = true
		}
	case mad.AttrNodeInfo:
		s.heavy = true // it has woken up
	}
}

func (s *SM) looked() {
	s.stage = stageIdle
	if s.heavy {
		s.sweepAt = s.now
		return
	}
	s.sweepAt = s.now.Add(s.cfg.Sweep)
	if s.cfg.Sweep == 0 {
		s.sweepAt = clock.Never
	}
}

package subnet

import "github.com/softvpi/softvpi/wire/mad"

// QoS are the tables of virtual lanes that all ports are given.
type QoS struct {
	HighLimit uint8 // of the high priority part of arbitration
	Low, High []mad.VLArbitration
	SLtoVL    [16]uint8 // lane of every service level
}

// DefaultQoS are OpenSM's tables.
func DefaultQoS() *QoS {
	q := &QoS{}
	for vl := range uint8(15) {
		low, high := mad.VLArbitration{VL: vl, Weight: 4}, mad.VLArbitration{VL: vl}
		if vl == 0 {
			low.Weight, high.Weight = 0, 4
		}
		q.Low, q.High = append(q.Low, low), append(q.High, high)
		q.SLtoVL[vl] = vl
	}
	q.SLtoVL[15] = 7
	return q
}

// qos are the tables to be set: those configured, or for routes over several lanes the usual ones. nil: none.
func (s *SM) qos() *QoS {
	if s.cfg.QoS == nil && s.routes.Lanes > 1 {
		return DefaultQoS()
	}
	return s.cfg.QoS
}

// mapping is the table of service levels for a number of lanes: a level whose lane is not there takes one that is.
func (q *QoS) mapping(lanes int) (t mad.SLtoVLMappingTable) {
	for sl, vl := range q.SLtoVL {
		if vl == 15 { // drop
			t[sl] = 15
			continue
		}
		t[sl] = uint8(int(vl) % lanes)
	}
	return t
}

// Bits of the modifier of SLtoVLMappingTable that mean all ports, where a switch has OptimizedSLtoVLMappingProgramming (IBA 14.2.5.8).
const (
	slAllOut = 1 << 16
	slAllIn  = 1 << 17
)

// setUpLanes asks for the tables of a port's lanes to be set, when the port is new or the tables are.
func (s *SM) setUpLanes(p int32) {
	q := s.qos()
	n := s.cur
	port := &n.Ports[p]
	if q == nil || port.Num == 0 || port.Peer == none || !linked(&port.Info) {
		return
	}
	at := s.askAt(p)
	if !n.isSwitch(p) {
		if port.Info.PortState != mad.PortActive || !s.firstDone {
			s.x.push(work{at: at, attr: mad.AttrSLtoVLMappingTable, set: true})
			s.pushArbitration(at, p)
		}
		return
	}
	t := s.tables[n.Nodes[port.Node].Info.NodeGUID]
	if want := q.mapping(15); port.Info.PortState == mad.PortActive && t.sl != nil && *t.sl == want {
		return
	}
	s.pushArbitration(at, p)
	if n.Nodes[port.Node].SwInfo != nil && n.Nodes[port.Node].SwInfo.OptimizedSLtoVLMappingProgramming&1 != 0 {
		s.x.push(work{at: at, attr: mad.AttrSLtoVLMappingTable, mod: slAllIn | uint32(port.Num), set: true})
		return
	}
	first := n.Nodes[port.Node].First
	for in := range uint32(n.Nodes[port.Node].Info.NumPorts) + 1 {
		if other := &n.Ports[first+int32(in)]; in != uint32(port.Num) && (in == 0 || linked(&other.Info)) {
			s.x.push(work{at: at, attr: mad.AttrSLtoVLMappingTable, mod: in<<8 | uint32(port.Num), set: true})
		}
	}
}

func (s *SM) pushArbitration(at, p int32) {
	port := &s.cur.Ports[p]
	num := uint32(port.Num)
	if !s.cur.isSwitch(p) {
		num = 0
	}
	if port.Info.VLArbitrationLowCap > 0 {
		s.x.push(work{at: at, attr: mad.AttrVLArbitrationTable, mod: 1<<16 | num, set: true})
	}
	if port.Info.VLArbitrationHighCap > 0 {
		s.x.push(work{at: at, attr: mad.AttrVLArbitrationTable, mod: 3<<16 | num, set: true})
	}
}

// outPort is the port whose lanes a table is about.
func (n *Subnet) outPort(w *work) *Port {
	if node := &n.Nodes[n.Ports[w.at].Node]; node.Switch != none {
		return &n.Ports[node.First+int32(w.mod&0xff)]
	}
	return &n.Ports[w.at]
}

// lanesOf is how many data lanes the link of a port has.
func (n *Subnet) lanesOf(port *Port) int {
	if port.Peer == none {
		return 1
	}
	return dataLanes(min(port.Info.VLCap, n.Ports[port.Peer].Info.VLCap))
}

func (s *SM) slToVL(w *work) mad.SLtoVLMappingTable {
	q := s.qos()
	if t := s.tables[s.cur.Nodes[s.cur.Ports[w.at].Node].Info.NodeGUID]; t != nil {
		want := q.mapping(15)
		t.sl = &want
	}
	return q.mapping(s.cur.lanesOf(s.cur.outPort(w)))
}

// arbitration is a block of the table of a port: 1 is the first of low priority, 3 that of high.
func (q *QoS) arbitration(n *Subnet, port *Port, block uint32) (t mad.VLArbitrationTable) {
	list, room := q.Low, port.Info.VLArbitrationLowCap
	if block == 3 {
		list, room = q.High, port.Info.VLArbitrationHighCap
	}
	i, lanes := 0, n.lanesOf(port)
	for _, a := range list {
		if int(a.VL) < lanes && i < min(int(room), len(t)) {
			t[i] = a
			i++
		}
	}
	return t
}

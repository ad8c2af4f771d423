package subnet

import (
	"slices"

	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/mad"
)

// QoS holds the virtual lane tables of ports, by kind of node.
type QoS struct{ CA, Router, Switch Lanes }

// Lanes are the tables for a kind of port: the limit of the high-priority part of arbitration, its two
// tables, and the lane of each service level, 15 for one whose packets are dropped (IBA 7.6.6 and 7.6.9).
type Lanes struct {
	Max       int // maximum of data lanes, 1 to 15
	HighLimit uint8
	Low, High []mad.VLArbitration // at most 64 entries each
	SLtoVL    [16]uint8
}

const dataVLs = 15 // virtual lanes 0 to 14

// DefaultLanes are OpenSM's tables (opensm(8), "QOS CONFIGURATION").
func DefaultLanes() Lanes {
	q := Lanes{Max: dataVLs}
	for vl := range uint8(dataVLs) {
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

// defaultQoS returns DefaultLanes for all kinds.
func defaultQoS() *QoS { return &QoS{DefaultLanes(), DefaultLanes(), DefaultLanes()} }

// check refuses invalid fields. The error is a *ConfigError.
func (q *QoS) check() error {
	for _, x := range []struct {
		kind string
		l    *Lanes
	}{{"CA", &q.CA}, {"router", &q.Router}, {"switch", &q.Switch}} {
		if err := within("QoS lanes of "+x.kind+" ports", x.l.Max, 1, dataVLs); err != nil {
			return err
		}
		for _, vl := range x.l.SLtoVL {
			if err := within("QoS lane of a service level of "+x.kind+" ports", int(vl), 0, 15); err != nil {
				return err
			}
		}
		for _, table := range [][]mad.VLArbitration{x.l.Low, x.l.High} {
			if err := within("QoS entries of an arbitration table of "+x.kind+" ports", len(table), 0, 64); err != nil {
				return err
			}
			for _, e := range table {
				if err := within("QoS lane in an arbitration table of "+x.kind+" ports", int(e.VL), 0, dataVLs-1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// of returns the tables for a port.
func (q *QoS) of(n *topology.Subnet, p int32) *Lanes {
	switch n.Nodes[n.Ports[p].Node].Info.NodeType {
	case mad.NodeSwitch:
		return &q.Switch
	case mad.NodeRouter:
		return &q.Router
	}
	return &q.CA
}

// code returns the code of OperationalVLs for Max (IBA 14.2.5.6).
func (q *Lanes) code() uint8 {
	code := uint8(1)
	for code < 5 && dataLanes(code+1) <= q.Max {
		code++
	}
	return code
}

// qos returns the tables to set: those configured, or for routes over several lanes the default ones,
// which map each service level to the lane of its number. nil: none.
func (s *SM) qos() *QoS {
	if s.routes != nil && s.routes.Lanes > 1 && (s.cfg.QoS == nil || !s.cfg.QoS.straight(s.routes.Lanes)) {
		return defaultQoS()
	}
	return s.cfg.QoS
}

// straight reports whether service levels below levels use the lane of the same number everywhere.
func (q *QoS) straight(levels int) bool {
	for _, l := range []*Lanes{&q.CA, &q.Router, &q.Switch} {
		for sl := range levels {
			if int(l.SLtoVL[sl]) != sl {
				return false
			}
		}
	}
	return true
}

// mapping returns the SL-to-VL table for a number of lanes: a level whose lane does not exist gets one
// that does.
func (q *Lanes) mapping(lanes int) (t mad.SLtoVLMappingTable) {
	for sl, vl := range q.SLtoVL {
		if vl == 15 { // drop
			t[sl] = 15
			continue
		}
		t[sl] = uint8(int(vl) % lanes)
	}
	return t
}

// Bits of the modifier of SLtoVLMappingTable that select all ports, for switches with
// OptimizedSLtoVLMappingProgramming (IBA 14.2.5.8).
const (
	slAllOut = 1 << 16
	slAllIn  = 1 << 17
)

// setUpLanes sets the lane tables of a port if the port is new or the tables have changed.
func (s *SM) setUpLanes(p int32) {
	q := s.qos()
	n := s.cur
	port := &n.Ports[p]
	if q == nil || port.Num == 0 || port.Peer == topology.None || !topology.Linked(&port.Info) {
		return
	}
	at := s.askAt(p)
	if !n.IsSwitch(p) {
		if port.Info.PortState != mad.PortActive || !s.firstDone {
			s.x.push(work{at: at, attr: mad.AttrSLtoVLMappingTable, set: true})
			s.pushArbitration(at, p)
		}
		return
	}
	t := s.tables[n.Nodes[port.Node].Info.NodeGUID]
	if want := q.Switch.mapping(dataVLs); port.Info.PortState == mad.PortActive && t.sl != nil && *t.sl == want {
		return
	}
	s.pushArbitration(at, p)
	if n.Nodes[port.Node].SwInfo != nil && n.Nodes[port.Node].SwInfo.OptimizedSLtoVLMappingProgramming&1 != 0 {
		switch first, alike := s.alike(p); {
		case t.sl != nil || !alike:
			s.x.push(work{at: at, attr: mad.AttrSLtoVLMappingTable, mod: slAllIn | uint32(port.Num), set: true})
		case first == p:
			s.x.push(work{at: at, attr: mad.AttrSLtoVLMappingTable, mod: slAllOut | slAllIn | uint32(port.Num), set: true})
		}
		return
	}
	first := n.Nodes[port.Node].First
	for in := range uint32(n.Nodes[port.Node].Info.NumPorts) + 1 {
		if other := &n.Ports[first+int32(in)]; in != uint32(port.Num) && (in == 0 || topology.Linked(&other.Info)) {
			s.x.push(work{at: at, attr: mad.AttrSLtoVLMappingTable, mod: in<<8 | uint32(port.Num), set: true})
		}
	}
}

// alike reports whether all links of a switch have the same number of lanes, and which is the first port
// with a link.
func (s *SM) alike(p int32) (first int32, same bool) {
	n := s.cur
	node := &n.Nodes[n.Ports[p].Node]
	lanes := s.lanesOf(n, &n.Ports[p])
	first, same = topology.None, true
	for q := node.First + 1; q <= node.First+int32(node.Info.NumPorts); q++ {
		if port := &n.Ports[q]; port.Peer != topology.None && topology.Linked(&port.Info) {
			if first == topology.None {
				first = q
			}
			same = same && s.lanesOf(n, port) == lanes
		}
	}
	return first, same
}

func (s *SM) pushArbitration(at, p int32) {
	port := &s.cur.Ports[p]
	num := uint32(port.Num)
	if !s.cur.IsSwitch(p) {
		num = 0
	}
	for _, half := range []struct {
		block uint32
		room  uint8
	}{{1, port.Info.VLArbitrationLowCap}, {3, port.Info.VLArbitrationHighCap}} {
		if half.room > 0 {
			s.x.push(work{at: at, attr: mad.AttrVLArbitrationTable, mod: half.block<<16 | num, set: true})
		}
		if half.room > 32 {
			s.x.push(work{at: at, attr: mad.AttrVLArbitrationTable, mod: (half.block+1)<<16 | num, set: true})
		}
	}
}

// outPort returns the port whose lanes a table is about.
func (s *SM) outPort(w *work) *topology.Port {
	if node := &s.cur.Nodes[s.cur.Ports[w.at].Node]; node.Switch != topology.None {
		return &s.cur.Ports[node.First+int32(w.mod&0xff)]
	}
	return &s.cur.Ports[w.at]
}

// lanesOf returns how many data lanes the link of a port has.
func (s *SM) lanesOf(n *topology.Subnet, port *topology.Port) int {
	if port.Peer == topology.None {
		return 1
	}
	code := min(port.Info.VLCap, n.Ports[port.Peer].Info.VLCap, s.cfg.Limits.MaxVLs)
	if q := s.qos(); q != nil {
		code = min(code, q.of(n, n.Nodes[port.Node].First).code(), q.of(n, port.Peer).code())
	}
	return dataLanes(code)
}

func (s *SM) slToVL(w *work) mad.SLtoVLMappingTable {
	q := s.qos()
	if t := s.tables[s.cur.Nodes[s.cur.Ports[w.at].Node].Info.NodeGUID]; t != nil {
		want := q.Switch.mapping(dataVLs)
		t.sl = &want
	}
	return s.mappingOf(s.cur, s.outPort(w))
}

// mappingOf returns the SL-to-VL table of a port towards its link.
func (s *SM) mappingOf(n *topology.Subnet, port *topology.Port) mad.SLtoVLMappingTable {
	return s.qos().of(n, n.Nodes[port.Node].First).mapping(s.lanesOf(n, port))
}

// arbitration returns a block of the arbitration table of a port of the current subnet.
func (s *SM) arbitration(port *topology.Port, block uint32) mad.VLArbitrationTable {
	return s.arbitrationOf(s.cur, port, block)
}

// arbitrationOf returns a block of a port's arbitration table: 1 and 2 are low priority, 3 and 4 high (IBA
// 14.2.5.9).
func (s *SM) arbitrationOf(n *topology.Subnet, port *topology.Port, block uint32) (t mad.VLArbitrationTable) {
	q := s.qos().of(n, n.Nodes[port.Node].First)
	list, room := q.Low, port.Info.VLArbitrationLowCap
	if block >= 3 {
		list, room = q.High, port.Info.VLArbitrationHighCap
	}
	lanes := s.lanesOf(n, port)
	list = slices.DeleteFunc(slices.Clone(list), func(a mad.VLArbitration) bool { return int(a.VL) >= lanes })
	list = list[:min(len(list), int(room))]
	if begin := int(block-1) % 2 * len(t); begin < len(list) {
		copy(t[:], list[begin:])
	}
	return t
}

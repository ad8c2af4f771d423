package subnet

import (
	"github.com/softvpi/softvpi/internal/subnet/administration"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// A manager that takes over does not know its predecessor's multicast groups until their members join
// again, but meanwhile the switches keep forwarding their packets. It reads the multicast forwarding
// tables and tells the administration which ports they serve.

const (
	mftBlock     = 32 // multicast LIDs in a block of a table
	mftPositions = 16 // ports in an entry
)

// inherit reads the multicast forwarding tables of switches that were set up earlier.
func (s *SM) inherit() {
	s.stage = stageInherit
	s.inheriting = false
	if s.cfg.NoMulticast {
		return
	}
	for _, node := range s.cur.Switches {
		if nd := &s.cur.Nodes[node]; nd.SwInfo != nil && s.cur.Ports[nd.First].Info.LID != 0 {
			s.readGroups(node, 0)
		}
	}
}

// readGroups requests a block of a switch's table, if the switch has it.
func (s *SM) readGroups(node int32, block uint32) {
	nd := &s.cur.Nodes[node]
	top := min(int(administration.LastMLID), int(ib.LIDFirstMulticast)+int(nd.SwInfo.MulticastFDBCap)-1)
	if s.cur.Ports[nd.First].Info.CapabilityMask&mad.CapIsMulticastFDBTopSupported != 0 && nd.SwInfo.MulticastFDBTop != 0 {
		top = min(top, int(nd.SwInfo.MulticastFDBTop))
	}
	if int(ib.LIDFirstMulticast)+int(block)*mftBlock > top {
		return
	}
	for position := range uint32(nd.Info.NumPorts)/mftPositions + 1 {
		s.x.push(work{at: nd.First, attr: mad.AttrMulticastForwardingTable, mod: position<<28 | block})
	}
}

// onGroups handles a block. Tables are filled from the beginning, so the next one is needed only if this
// one has entries.
func (s *SM) onGroups(w work, t mad.MulticastForwardingTable) {
	node := s.cur.Ports[w.at].Node
	guid := s.cur.Nodes[node].Info.NodeGUID
	have := s.tables[guid]
	if have == nil {
		have = newTables()
		s.tables[guid] = have
	}
	block := w.mod & 0x1ff
	first := t != (mad.MulticastForwardingTable{}) && !have.more[block]
	have.mft[w.mod] = t
	if first {
		if have.more == nil {
			have.more = map[uint32]bool{}
		}
		have.more[block] = true
		s.readGroups(node, block+1)
	}
}

// inherited determines which ports the tables serve.
func (s *SM) inherited() {
	served := map[ib.LID]administration.Served{}
	for _, node := range s.cur.Switches {
		nd := &s.cur.Nodes[node]
		t := s.tables[nd.Info.NodeGUID]
		if t == nil {
			continue
		}
		for at, block := range t.mft {
			for i, mask := range block {
				for bit := range mftPositions {
					if mask>>bit&1 != 0 {
						s.inheritPort(served, ib.LIDFirstMulticast+ib.LID(int(at&0x1ff)*mftBlock+i), nd, int(at>>28)*mftPositions+bit)
					}
				}
			}
		}
	}
	s.sa.Inherit(s.now, served)
}

// inheritPort notes that a switch forwards packets for a multicast LID to a port.
func (s *SM) inheritPort(served map[ib.LID]administration.Served, mlid ib.LID, nd *topology.Node, port int) {
	if port > int(nd.Info.NumPorts) || mlid > administration.LastMLID {
		return
	}
	l := served[mlid]
	if l == nil {
		l = administration.Served{}
		served[mlid] = l
	}
	self := s.cur.Ports[nd.First].GUID
	l[self] = l[self] || port == 0
	if q := s.cur.Ports[nd.First+int32(port)].Peer; port != 0 && q != topology.None && !s.cur.IsSwitch(q) && s.cur.Ports[q].Reach {
		l[s.cur.Ports[q].GUID] = true
	}
}

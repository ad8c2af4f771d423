package subnet

import (
	"maps"
	"slices"

	"github.com/softvpi/softvpi/internal/subnet/administration"
	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// setUpGroups writes the multicast forwarding tables that differ from what the groups need.
func (s *SM) setUpGroups() {
	s.sa.GroupsWritten()
	if s.cfg.NoMulticast || s.graph == nil || s.graph.Switches() == 0 {
		return
	}
	want := make([]map[uint32]mad.MulticastForwardingTable, s.graph.Switches())
	s.groupTables(want)
	for i, node := range s.sws {
		nd := &s.cur.Nodes[node]
		t := s.tables[nd.Info.NodeGUID]
		if t == nil || nd.SwInfo == nil {
			continue
		}
		for at := range t.mft { // entries no longer needed
			if _, ok := want[i][at]; !ok {
				if want[i] == nil {
					want[i] = map[uint32]mad.MulticastForwardingTable{}
				}
				want[i][at] = mad.MulticastForwardingTable{}
			}
		}
		for _, at := range slices.Sorted(maps.Keys(want[i])) {
			block := want[i][at]
			if have, ok := t.mft[at]; ok && have == block {
				continue
			}
			t.mft[at] = block
			s.x.push(work{at: nd.First, attr: mad.AttrMulticastForwardingTable, mod: at, set: true})
		}
	}
}

// groupTables computes what all groups need.
func (s *SM) groupTables(want []map[uint32]mad.MulticastForwardingTable) {
	if s.tree == nil || s.treeOf != s.graph {
		s.tree, s.treeOf = nil, s.graph
	}
	for mlid, members := range s.sa.Receivers() {
		places := s.places(members)
		if len(places) == 0 {
			continue
		}
		if s.tree == nil {
			s.tree = routing.NewSpanningTree(s.graph)
		}
		index := uint32(mlid - ib.LIDFirstMulticast)
		for sw, mask := range s.tree.Cover(s.graph, places) {
			nd := &s.cur.Nodes[s.sws[sw]]
			if nd.SwInfo == nil || index >= uint32(nd.SwInfo.MulticastFDBCap) {
				continue
			}
			for position := range int(nd.Info.NumPorts)/16 + 1 {
				if mask.Position(position) == 0 {
					continue
				}
				if want[sw] == nil {
					want[sw] = map[uint32]mad.MulticastForwardingTable{}
				}
				at := uint32(position)<<28 | index/32
				block := want[sw][at]
				block[index%32] = mask.Position(position)
				want[sw][at] = block
			}
		}
	}
}

// places finds members, given by port GUID, in the graph.
func (s *SM) places(members []administration.Receiver) (list []routing.GroupMember) {
	n := s.cur
	for _, m := range members {
		p := n.EndPortOfGUID(m.GUID)
		if p == topology.None {
			continue
		}
		if n.IsSwitch(p) {
			list = append(list, routing.GroupMember{Switch: s.swOf[n.Ports[p].Node], Receives: m.Receives})
		} else if q := n.Ports[p].Peer; q != topology.None && n.IsSwitch(q) {
			list = append(list, routing.GroupMember{Switch: s.swOf[n.Ports[q].Node], Port: n.Ports[q].Num, Receives: m.Receives})
		}
	}
	return list
}

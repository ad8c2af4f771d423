package subnet

import (
	"slices"

	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/internal/subnet/topology"
)

// buildGraph creates the routing graph of the subnet. Switches are sorted by node GUID, so that the same
// subnet gets the same routes in whatever order it was discovered.
func (s *SM) buildGraph() *routing.Graph {
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
		s.swOf[i] = topology.None
	}
	guids, ports := make([]uint64, len(s.sws)), make([]uint8, len(s.sws))
	for i, node := range s.sws {
		s.swOf[node] = int32(i)
		guids[i], ports[i] = n.Nodes[node].Info.NodeGUID, n.Nodes[node].Info.NumPorts
	}
	g := routing.NewGraph(guids, ports)
	for i := range n.Ports {
		a, b := int32(i), n.Ports[i].Peer
		if b > a && n.IsSwitch(a) && n.IsSwitch(b) {
			_ = g.Connect(s.swOf[n.Ports[a].Node], n.Ports[a].Num, s.swOf[n.Ports[b].Node], n.Ports[b].Num)
		}
	}
	targets := make([]routing.Target, 0, len(s.wantLID))
	for p, lid := range s.wantLID {
		t := routing.Target{LID: lid, Count: s.lidCount(p)}
		switch q := n.Ports[p].Peer; {
		case n.IsSwitch(p):
			t.Switch = s.swOf[n.Ports[p].Node]
		case q != topology.None && n.IsSwitch(q):
			t.Switch, t.Port = s.swOf[n.Ports[q].Node], n.Ports[q].Num
		default:
			continue // the only other port, connected by a cable between two adapters
		}
		targets = append(targets, t)
	}
	slices.SortFunc(targets, func(a, b routing.Target) int { return int(a.LID) - int(b.LID) })
	for _, t := range targets {
		_ = g.Attach(t)
	}
	return g
}

// route computes the routes of the subnet.
func (s *SM) route() error {
	g := s.buildGraph()
	o := routing.Options{ConnectRoots: s.cfg.ConnectRoots, MaxLanes: s.lanes()}
	for _, guid := range s.cfg.Roots {
		if i := s.cur.NodeOfGUID(guid); i != topology.None && s.swOf[i] != topology.None {
			o.Roots = append(o.Roots, s.swOf[i])
		}
	}
	if s.routes != nil && g.Equal(s.graph) && o.Equal(&s.routedBy) {
		s.say(EventRouted, "%d switches, %d end ports, highest LID %d, routed as before by %s, %d lanes", g.Switches(), len(s.wantLID),
			s.routes.Top, s.routes.Engine, s.routes.Lanes)
		return nil // engines are pure: they would find the same
	}
	r, failed, err := routing.Route(g, s.cfg.Engines, o)
	for _, f := range failed {
		s.problem("%v", f)
	}
	if err != nil {
		return err
	}
	if g.Switches() > 0 && r.Top > 0 {
		for _, node := range s.sws {
			if info := s.cur.Nodes[node].SwInfo; info != nil && int(info.LinearFDBCap) <= r.Top {
				s.problem("%s has room for %d LIDs in its forwarding table, the highest LID is %d", s.cur.Name(s.cur.Nodes[node].First),
					info.LinearFDBCap, r.Top)
			}
		}
	}
	s.graph, s.routes, s.routedBy = g, r, o
	s.say(EventRouted, "%d switches, %d end ports, highest LID %d, routed by %s, %d lanes", g.Switches(), len(s.wantLID), r.Top, r.Engine,
		r.Lanes)
	return nil
}

// lanes returns how many data lanes all links between switches have.
func (s *SM) lanes() int {
	most := s.cfg.MaxLanes
	if most == 0 {
		most = 8
	}
	n := s.cur
	for i := range n.Ports {
		if q := n.Ports[i].Peer; q != topology.None && n.IsSwitch(int32(i)) && n.IsSwitch(q) {
			most = min(most, dataLanes(n.Ports[i].Info.VLCap))
		}
	}
	return max(1, most)
}

// dataLanes returns the number of data lanes for a VLCap or OperationalVLs (IBA 14.2.5.6).
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

package ibdiagnet

import (
	"cmp"
	"maps"
	"slices"

	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
)

// routed is the fabric in the form that routing uses: its switches, the links between them, the LIDs
// behind their ports and their tables.
type routed struct {
	graph    *routing.Graph
	switches []*discovery.Node
	number   map[*discovery.Node]int32
	ports    []*discovery.Port // adapters' ports behind switches, by LID
	tables   [][]uint8
}

// newRouted builds the graph. LIDs that two ports have are omitted; they are reported elsewhere.
func (c *check) newRouted(tables map[*discovery.Node][]uint8) *routed {
	r := &routed{number: map[*discovery.Node]int32{}}
	var guids []uint64
	var counts []uint8
	for _, n := range c.f.Nodes {
		if n.IsSwitch() {
			r.number[n] = int32(len(r.switches))
			r.switches, r.tables = append(r.switches, n), append(r.tables, tables[n])
			guids, counts = append(guids, n.Info.NodeGUID), append(counts, min(n.Info.NumPorts, routing.MaxPorts))
		}
	}
	r.graph = routing.NewGraph(guids, counts)
	for _, p := range c.ports(false) {
		if q := p.Remote; q != nil && p.Node.IsSwitch() && q.Node.IsSwitch() && !c.before(q, p) {
			_ = r.graph.Connect(r.number[p.Node], p.Num, r.number[q.Node], q.Num)
		}
	}
	ends := c.ports(true)
	slices.SortFunc(ends, func(a, b *discovery.Port) int { return cmp.Compare(a.BaseLID(), b.BaseLID()) })
	for _, p := range ends {
		t := routing.Target{LID: p.BaseLID(), Count: 1 << p.LMC}
		switch {
		case t.LID == 0:
			continue
		case p.Node.IsSwitch():
			t.Switch = r.number[p.Node]
		case p.Remote != nil && p.Remote.Node.IsSwitch():
			t.Switch, t.Port = r.number[p.Remote.Node], p.Remote.Num
		default:
			continue
		}
		if r.graph.Attach(t) == nil && t.Port != 0 {
			r.ports = append(r.ports, p)
		}
	}
	return r
}

func (r *routed) table(s int32) []uint8 { return r.tables[s] }

// qualities reports how the unicast tables lead from adapter to adapter: how far, how evenly over the
// switches' ports, and whether packets can wait for each other in a circle.
func (c *check) qualities(r *routed) {
	c.printf("-I- Verifying all CA to CA paths ...\n")
	hops, through, scanned := r.paths()
	c.printf("    ---------------------- CA to CA : LFT ROUTE HOP HISTOGRAM -----------------\n    HOPS NUM-CA-CA-PAIRS\n")
	for _, h := range slices.Sorted(maps.Keys(hops)) {
		c.printf("    %-4d %d\n", h, hops[h])
	}
	c.printf("    ---------- LFT CA to CA : SWITCH OUT PORT - NUM DLIDS HISTOGRAM -----------\n    NUM-DLIDS NUM-SWITCH-PORTS\n")
	for _, n := range slices.Sorted(maps.Keys(through)) {
		c.printf("    %-9d %d\n", n, through[n])
	}
	c.printf("-I- Scanned:%d CA to CA paths\n", scanned)

	c.title("Checking credit loops")
	bad := 0
	loop, warnings := c.creditLoop(r)
	if loop != nil {
		bad++
		c.printf("-E- Credit loop of %d links, whose packets can wait for each other in a circle:\n", len(loop.Channels))
		for i, x := range loop.Channels {
			c.printf("    %s Port=%d VL=%d\n", switchName(r.switches[x.Switch]), x.Port, loop.Lanes[i])
		}
	} else {
		c.printf("-I- no credit loops found\n")
	}
	c.stage("Fabric Credit Loops Check", bad, warnings)
}

// paths follows the tables from every adapter to every LID of others. hops counts pairs by distance in
// links, through counts switch ports towards switches by number of destinations, scanned counts all pairs.
func (r *routed) paths() (hops, through map[int]int, scanned int) {
	g := r.graph
	n := g.Switches()
	hosts := make([]int, n)
	for _, t := range g.Targets {
		if t.Port != 0 {
			hosts[t.Switch]++
		}
	}
	hops, through = map[int]int{}, map[int]int{}
	dlids := map[[2]int32]int{} // by switch and port
	distance, way := make([]int, n), make([]int32, 0, n)
	used := make([]bool, n)
	for _, t := range g.Targets {
		if t.Port == 0 {
			continue
		}
		for lid := int(t.LID); lid < int(t.LID)+t.Count; lid++ {
			clear(distance)
			clear(used)
			if distance[t.Switch] = noWay; lid < len(r.tables[t.Switch]) && r.tables[t.Switch][lid] == t.Port {
				distance[t.Switch] = 2 // from another adapter at the same switch
			}
			for s := range int32(n) {
				if hosts[s] == 0 {
					continue
				}
				if r.follow(s, lid, distance, way); distance[s] == noWay {
					continue
				}
				others := hosts[s]
				if s == t.Switch {
					others--
				}
				if others > 0 {
					hops[distance[s]] += others
					scanned += others
				}
				for at := s; at != t.Switch && !used[at]; {
					used[at] = true
					port := r.tables[at][lid]
					dlids[[2]int32{at, int32(port)}]++
					at, _, _ = g.Peer(at, port)
				}
			}
		}
	}
	for _, count := range dlids {
		through[count]++
	}
	return hops, through, scanned
}

// noWay is the distance of a switch from which packets do not arrive.
const noWay = -1

// follow fills in the number of links from an adapter at s, and at each switch on the path, to a LID; 0
// means not known yet. way is a buffer for the switches on the path.
func (r *routed) follow(s int32, lid int, distance []int, way []int32) {
	at := s
	for distance[at] == 0 {
		way = append(way, at)
		distance[at] = noWay // until the end is found: if it is met again there is a circle
		t := r.tables[at]
		if lid >= len(t) || t[lid] == 0 {
			return
		}
		next, _, ok := r.graph.Peer(at, t[lid])
		if !ok {
			return
		}
		at = next
	}
	far := distance[at]
	if far == noWay {
		return
	}
	for i := len(way) - 1; i >= 0; i-- {
		far++
		distance[way[i]] = far
	}
}

package routing

// routeMinHop gives every switch a shortest path to every LID and spreads the LIDs of hosts evenly over
// the ports that begin one. It ignores credit loops: on rings and tori there will be some.
func routeMinHop(g *Graph, _ Options) (*Routes, error) {
	g.index()
	r := newRoutes(g, "minhop")
	b := newBalance(g, r)
	dist := make([]uint8, g.Switches())
	var order []int32
	for d := range int32(g.Switches()) {
		if b.empty(d) {
			continue
		}
		order = g.distances(d, dist, order)
		for _, s := range order[1:] {
			b.ports = b.ports[:0]
			for i := g.adjacent[s]; i < g.adjacent[s+1]; i++ {
				if dist[g.adjPeer[i]]+1 == dist[s] {
					b.ports = append(b.ports, i)
				}
			}
			b.assign(s, d)
		}
	}
	return r, nil
}

// balance spreads LIDs over equally good ports.
type balance struct {
	g     *Graph
	r     *Routes
	from  []int32 // targets by switch
	list  []int32
	load  []uint32 // by adjacency index: LIDs of hosts that leave by the port
	ports []int32  // the candidates, as adjacency indexes

	// By candidate, contiguous, while LIDs are assigned.
	loads [MaxPorts + 1]uint32
	used  [MaxPorts + 1]bool // taken by another LID of the same target
}

func newBalance(g *Graph, r *Routes) *balance {
	b := &balance{g: g, r: r, load: make([]uint32, len(g.adjPort))}
	b.from, b.list = g.bySwitch()
	return b
}

// empty reports whether there is no LID at a switch.
func (b *balance) empty(d int32) bool { return b.from[d] == b.from[d+1] }

// assign gives s one of the candidate ports for every LID at d. The LIDs of one target use different ports
// as far as possible.
func (b *balance) assign(s, d int32) {
	if len(b.ports) == 0 {
		return
	}
	for i, p := range b.ports {
		b.loads[i] = b.load[p]
	}
	table := b.r.Table(s)
	for _, t := range b.list[b.from[d]:b.from[d+1]] {
		target := &b.g.Targets[t]
		if target.Count > 1 {
			b.assignMany(table, target)
			continue
		}
		best := b.lightest()
		table[target.LID] = b.g.adjPort[b.ports[best]]
		if target.Port != 0 {
			b.loads[best]++
		}
	}
	for i, p := range b.ports {
		b.load[p] = b.loads[i]
	}
}

// lightest returns the candidate with the least load, the first of equals.
func (b *balance) lightest() int {
	best, least := 0, b.loads[0]
	for i, l := range b.loads[1:len(b.ports)] {
		if l < least {
			best, least = i+1, l
		}
	}
	return best
}

func (b *balance) assignMany(table []byte, target *Target) {
	n := len(b.ports)
	for l := range target.Count {
		if l%n == 0 {
			clear(b.used[:n])
		}
		best := -1
		for i := range n {
			if !b.used[i] && (best < 0 || b.loads[i] < b.loads[best]) {
				best = i
			}
		}
		b.used[best] = true
		table[int(target.LID)+l] = b.g.adjPort[b.ports[best]]
		if target.Port != 0 {
			b.loads[best]++
		}
	}
}

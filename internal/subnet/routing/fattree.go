package routing

// routeFatTree routes trees of switches in which every link joins a level and the next one, with all hosts
// at the lowest: complete or thinned, with any number of levels. Every host in turn gets a root of its
// own, by which all others reach it, so that a shift permutation of traffic shares no link as long as the
// tree is complete. Like routeUpDown it goes up first and then down, so there is no credit loop.
//
// For a subnet that is no such tree it fails with errUnroutable and names the offending link.
func routeFatTree(g *Graph, o Options) (*Routes, error) {
	g.index()
	r := newRoutes(g, "ftree")
	if g.Switches() == 0 {
		return r, nil
	}
	ranks, err := levels(g)
	if err != nil {
		return nil, err
	}
	f := &fatTree{
		updown: newUpDown(g, ranks), g: g, r: r,
		b:    newBalance(g, r),
		down: make([]uint32, len(g.adjPeer)),
		done: make([]bool, g.Switches()),
	}
	for d := range int32(g.Switches()) {
		if !f.b.empty(d) {
			f.toward(d)
		}
	}
	if missing := unreachedHosts(g, r, f.updown.sameIsland); missing != nil {
		return nil, unroutable("ftree", "switch %#016x has no way up and down to LID %d", g.GUID[missing.from], missing.to)
	}
	return connected(g, r, o), nil
}

// levels assigns every switch its level, 0 at the top, and checks that the graph is a fat tree.
func levels(g *Graph) ([]uint8, error) {
	height := g.heights()
	top := uint8(0)
	for s, h := range height {
		if h == unreached {
			return nil, unroutable("ftree", "switch %#016x is connected with no host", g.GUID[s])
		}
		top = max(top, h)
	}
	for s := range int32(g.Switches()) {
		for i := g.adjacent[s]; i < g.adjacent[s+1]; i++ {
			if t := g.adjPeer[i]; height[s] == height[t] {
				return nil, unroutable("ftree", "port %d of switch %#016x links it to %#016x at its own level", g.adjPort[i], g.GUID[s],
					g.GUID[t])
			}
		}
	}
	ranks := height // level 0 is the top from here on
	for s := range ranks {
		ranks[s] = top - height[s]
	}
	return ranks, nil
}

// fatTree is the state of routing one fat tree.
type fatTree struct {
	updown *upDown
	g      *Graph
	r      *Routes
	b      *balance
	down   []uint32 // by adjacency index at the lower end: hosts reached down this link
	done   []bool   // by switch: it has a port for the current LID
	queue  []int32
}

// toward sets every switch's ports for the LIDs at d.
func (f *fatTree) toward(d int32) {
	f.updown.toward(d)
	for _, t := range f.b.list[f.b.from[d]:f.b.from[d+1]] {
		target := &f.g.Targets[t]
		for l := range target.Count {
			f.route(d, int(target.LID)+l, target.Port != 0)
		}
	}
}

// route fills in one LID.
func (f *fatTree) route(d int32, lid int, host bool) {
	clear(f.done)
	f.done[d] = true
	f.queue = append(f.queue[:0], d)
	f.climb(d, lid, host)
	// From the root downwards: every switch below one that has a port goes up to it.
	for k := len(f.queue) - 1; k >= 0; k-- {
		f.descend(f.queue[k], lid, host)
	}
	f.fill(d, lid, host)
}

// climb chooses the way down to d from a root of its own, from the bottom up: at every level the parent
// over whose link the fewest hosts are reached.
func (f *fatTree) climb(d int32, lid int, host bool) {
	g := f.g
	for s := d; ; {
		best := none
		for i := g.adjacent[s]; i < g.adjacent[s+1]; i++ {
			if f.updown.isUp[i] && (best == none || f.down[i] < f.down[best]) {
				best = i
			}
		}
		if best == none {
			return
		}
		if host {
			f.down[best]++
		}
		s = g.adjPeer[best]
		f.r.lft[int(s)*f.r.stride+lid] = g.adjBack[best]
		f.done[s] = true
		f.queue = append(f.queue, s)
	}
}

// descend routes the switches below s that have no port yet up to it.
func (f *fatTree) descend(s int32, lid int, host bool) {
	g := f.g
	for i := g.adjacent[s]; i < g.adjacent[s+1]; i++ {
		t := g.adjPeer[i]
		if f.updown.isUp[i] || f.done[t] || f.updown.down[t] != noWay {
			continue
		}
		f.done[t] = true
		f.r.lft[int(t)*f.r.stride+lid] = g.adjPort[f.lightestTo(t, s, host)]
		f.descend(t, lid, host)
	}
}

// lightestTo returns the least used of the links from t up to s, as adjacency index.
func (f *fatTree) lightestTo(t, s int32, host bool) int32 {
	g, best := f.g, none
	for i := g.adjacent[t]; i < g.adjacent[t+1]; i++ {
		if g.adjPeer[i] == s && (best == none || f.b.load[i] < f.b.load[best]) {
			best = i
		}
	}
	if host {
		f.b.load[best]++
	}
	return best
}

// fill gives the switches that are not below this LID's root a path up and down, balanced.
func (f *fatTree) fill(d int32, lid int, host bool) {
	for _, s := range f.updown.byRank {
		if s == d || f.done[s] {
			continue
		}
		f.b.ports = f.updown.ports(s, f.b.ports[:0])
		if len(f.b.ports) == 0 {
			continue
		}
		best := f.b.ports[0]
		for _, p := range f.b.ports[1:] {
			if f.b.load[p] < f.b.load[best] {
				best = p
			}
		}
		if host {
			f.b.load[best]++
		}
		f.r.lft[int(s)*f.r.stride+lid] = f.g.adjPort[best]
	}
}

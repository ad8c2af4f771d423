package routing

import "slices"

// routeUpDown routes every packet first up towards the roots and then down, never up again, which avoids
// credit loops in any topology. Up is towards the nearest root and, at equal distance, towards the lower
// switch number.
//
// Two switches that have no common switch above them, such as two roots, have no path between each other,
// which no host notices; Options.ConnectRoots gives them a shortest path that breaks the rule.
func routeUpDown(g *Graph, o Options) (*Routes, error) {
	g.index()
	if g.Switches() == 0 {
		return newRoutes(g, "updn"), nil
	}
	if len(o.Roots) > 0 {
		r, missing := upDownFrom(g, o.Roots)
		if missing != nil {
			return nil, unroutable("updn", "switch %#016x has no way up and down to LID %d: choose other roots", g.GUID[missing.from],
				missing.to)
		}
		return connected(g, r, o), nil
	}
	r, missing := upDownFrom(g, g.roots())
	if missing != nil { // below one root all is reached
		if r, missing = upDownFrom(g, []int32{g.centre()}); missing != nil {
			return nil, unroutable("updn", "switch %#016x has no way up and down to LID %d", g.GUID[missing.from], missing.to)
		}
	}
	return connected(g, r, o), nil
}

func connected(g *Graph, r *Routes, o Options) *Routes {
	if o.ConnectRoots {
		connect(g, r)
	}
	return r
}

// upDownFrom routes below the given roots, and reports a pair that is left without a path.
func upDownFrom(g *Graph, roots []int32) (*Routes, *gap) {
	r := newRoutes(g, "updn")
	u := newUpDown(g, rank(g, roots))
	b := newBalance(g, r)
	for d := range int32(g.Switches()) {
		if b.empty(d) {
			continue
		}
		u.toward(d)
		for s := range int32(g.Switches()) {
			if s == d {
				continue
			}
			b.ports = u.ports(s, b.ports[:0])
			b.assign(s, d)
		}
	}
	return r, unreachedHosts(g, r, u.sameIsland)
}

// roots chooses switches for the top: those farthest from all hosts. If every switch has hosts, it is the
// one whose farthest switch is nearest.
func (g *Graph) roots() []int32 {
	if g.Switches() == 0 {
		return nil
	}
	height := g.heights()
	top := uint8(0)
	for _, h := range height {
		if h != unreached && h > top {
			top = h
		}
	}
	if top == 0 {
		return []int32{g.centre()}
	}
	var roots []int32
	for s, h := range height {
		if h == top {
			roots = append(roots, int32(s))
		}
	}
	return roots
}

// heights returns the distances of switches from the nearest one with a host.
func (g *Graph) heights() []uint8 {
	height := make([]uint8, g.Switches())
	var leaves []int32
	for s, n := range g.hosts() {
		height[s] = unreached
		if n > 0 {
			height[s] = 0
			leaves = append(leaves, int32(s))
		}
	}
	g.spread(leaves, height)
	return height
}

// spread searches the graph breadth first from the switches in queue, whose depth is set.
func (g *Graph) spread(queue []int32, depth []uint8) {
	for head := 0; head < len(queue); head++ {
		s := queue[head]
		if depth[s] >= unreached-1 {
			continue
		}
		for _, t := range g.adjPeer[g.adjacent[s]:g.adjacent[s+1]] {
			if depth[t] == unreached {
				depth[t] = depth[s] + 1
				queue = append(queue, t)
			}
		}
	}
}

// centre returns the switch with the smallest distance to the switch farthest from it, the first of
// equals.
func (g *Graph) centre() int32 {
	best, bestFar, bestSeen := int32(0), 256, 0
	dist := make([]uint8, g.Switches())
	var order []int32
	for s := range int32(g.Switches()) {
		order = g.distances(s, dist, order)
		far := int(dist[order[len(order)-1]])
		if len(order) > bestSeen || len(order) == bestSeen && far < bestFar {
			best, bestFar, bestSeen = s, far, len(order)
		}
	}
	return best
}

// rank returns the distance of every switch from the nearest root. In a part without a root the lowest
// switch serves as one.
func rank(g *Graph, roots []int32) []uint8 {
	ranks := make([]uint8, g.Switches())
	for i := range ranks {
		ranks[i] = unreached
	}
	for _, s := range roots {
		ranks[s] = 0
	}
	g.spread(slices.Clone(roots), ranks)
	for s := range ranks {
		if ranks[s] == unreached {
			ranks[s] = 0
			g.spread([]int32{int32(s)}, ranks)
		}
	}
	return ranks
}

// above reports whether a is up from b.
func above(ranks []uint8, a, b int32) bool {
	return ranks[a] < ranks[b] || ranks[a] == ranks[b] && a < b
}

// upDown finds the legal paths to one switch after the other.
type upDown struct {
	g      *Graph
	ranks  []uint8
	byRank []int32 // all switches, the highest first
	isUp   []bool  // by index of adjacency: the peer is up from here
	down   []uint16
	up     []uint16
	island []int32
}

const noWay = uint16(0xffff)

func newUpDown(g *Graph, ranks []uint8) *upDown {
	n := g.Switches()
	u := &upDown{g: g, ranks: ranks, isUp: make([]bool, len(g.adjPeer)), down: make([]uint16, n), up: make([]uint16, n)}
	for s := range int32(n) {
		u.byRank = append(u.byRank, s)
		for i := g.adjacent[s]; i < g.adjacent[s+1]; i++ {
			u.isUp[i] = above(ranks, g.adjPeer[i], s)
		}
	}
	slices.SortStableFunc(u.byRank, func(a, b int32) int { return int(ranks[a]) - int(ranks[b]) })
	return u
}

// toward computes for every switch the distance to d: by going only down and, if that is impossible, by
// going up first. A switch that can go down must: packets may arrive there that have already gone down.
func (u *upDown) toward(d int32) {
	g := u.g
	for s := range u.down {
		u.down[s], u.up[s] = noWay, noWay
	}
	u.down[d] = 0
	// From the lowest switch to the highest: those below are done.
	for k := len(u.byRank) - 1; k >= 0; k-- {
		s := u.byRank[k]
		if s == d {
			continue
		}
		for i := g.adjacent[s]; i < g.adjacent[s+1]; i++ {
			if t := g.adjPeer[i]; !u.isUp[i] && u.down[t] != noWay {
				u.down[s] = min(u.down[s], u.down[t]+1)
			}
		}
	}
	for _, s := range u.byRank {
		if u.down[s] != noWay {
			u.up[s] = u.down[s]
			continue
		}
		for i := g.adjacent[s]; i < g.adjacent[s+1]; i++ {
			if t := g.adjPeer[i]; u.isUp[i] && u.up[t] != noWay {
				u.up[s] = min(u.up[s], u.up[t]+1)
			}
		}
	}
}

// ports appends the ports of s, as adjacency indexes, that begin a shortest legal path.
func (u *upDown) ports(s int32, to []int32) []int32 {
	g := u.g
	if u.up[s] == noWay {
		return to
	}
	down := u.down[s] != noWay
	for i := g.adjacent[s]; i < g.adjacent[s+1]; i++ {
		t := g.adjPeer[i]
		if down && !u.isUp[i] && u.down[t] != noWay && u.down[t]+1 == u.down[s] ||
			!down && u.isUp[i] && u.up[t] != noWay && u.up[t]+1 == u.up[s] {
			to = append(to, i)
		}
	}
	return to
}

// sameIsland reports whether two switches are connected at all.
func (u *upDown) sameIsland(a, b int32) bool {
	if u.island == nil {
		u.island = u.g.islands()
	}
	return u.island[a] == u.island[b]
}

// islands numbers the connected parts of the graph.
func (g *Graph) islands() []int32 {
	island := make([]int32, g.Switches())
	for s := range island {
		island[s] = none
	}
	next := int32(0)
	for s := range island {
		if island[s] != none {
			continue
		}
		island[s] = next
		queue := []int32{int32(s)}
		for len(queue) > 0 {
			a := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			for _, t := range g.adjPeer[g.adjacent[a]:g.adjacent[a+1]] {
				if island[t] == none {
					island[t] = next
					queue = append(queue, t)
				}
			}
		}
		next++
	}
	return island
}

type gap struct {
	from int32
	to   int
}

// unreachedHosts finds a LID for which a switch with hosts has no entry, or a host for which some switch
// has none, although the two are connected.
func unreachedHosts(g *Graph, r *Routes, same func(a, b int32) bool) *gap {
	hosts := g.hosts()
	for i := range g.Targets {
		t := &g.Targets[i]
		for s := range int32(g.Switches()) {
			if hosts[s] == 0 && t.Port == 0 {
				continue
			}
			if r.lft[int(s)*r.stride+int(t.LID)] == NoPort && same(s, t.Switch) {
				return &gap{s, int(t.LID)}
			}
		}
	}
	return nil
}

// connect gives switches a shortest path to switches that they have none to.
func connect(g *Graph, r *Routes) {
	dist := make([]uint8, g.Switches())
	var order []int32
	for i := range g.Targets {
		t := &g.Targets[i]
		if t.Port != 0 {
			continue
		}
		order = g.distances(t.Switch, dist, order)
		// Via a switch whose own path is complete, or was completed a moment ago.
		for _, s := range order {
			if r.lft[int(s)*r.stride+int(t.LID)] != NoPort {
				continue
			}
			for k := g.adjacent[s]; k < g.adjacent[s+1]; k++ {
				if n := g.adjPeer[k]; dist[n]+1 == dist[s] {
					for l := range t.Count {
						r.lft[int(s)*r.stride+int(t.LID)+l] = g.adjPort[k]
					}
					break
				}
			}
		}
	}
}

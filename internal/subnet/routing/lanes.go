package routing

import "slices"

// spreadLanes gives every path, from a switch to a LID, a lane in which it closes no cycle of channels,
// that is, no buffer waits directly or indirectly for itself (Dally and Seitz). The routes must be
// shortest ones. A path uses the lane of the path that it leads into if possible, otherwise the first lane
// that fits.
func spreadLanes(g *Graph, r *Routes, most int) error {
	w := &weaver{g: g, r: r, most: most, sl: make([]uint8, len(r.lft)), link: make([]int32, g.Switches())}
	w.first[0], w.first[1] = upThenDown(g)
	w.lanes = []*channels{newChannels(g, w.first[0])}
	// Paths between hosts come first: in trees they fit in one lane, and paths between switches do not.
	if !w.all(true) || !w.all(false) {
		return unroutable("dfsssp", "the paths need more than the %d virtual lanes that there are", most)
	}
	r.sl, r.Lanes = w.sl, len(w.lanes)
	return nil
}

// weaver is the state of spreading paths over lanes.
type weaver struct {
	g     *Graph
	r     *Routes
	sl    []uint8
	lanes []*channels
	most  int
	first [2][]int32 // the initial order of links in even and odd lanes
	link  []int32    // by switch: the first link of its path to the current LID
	path  []int32
}

// all finds lanes for the paths to all LIDs of hosts, or of switches; false: there are too few lanes.
func (w *weaver) all(hosts bool) bool {
	g := w.g
	dist := make([]uint8, g.Switches())
	var order []int32
	from, list := g.bySwitch()
	for d := range int32(g.Switches()) {
		reached := false
		for _, t := range list[from[d]:from[d+1]] {
			target := &g.Targets[t]
			if target.Port != 0 != hosts {
				continue
			}
			if !reached {
				order, reached = g.distances(d, dist, order), true
			}
			for l := range target.Count {
				if !w.toward(order, int(target.LID)+l) {
					return false
				}
			}
		}
	}
	return true
}

// toward finds lanes for the paths to a LID from the switches in order, which begins with the LID's own.
func (w *weaver) toward(order []int32, lid int) bool {
	g, d := w.g, order[0]
	for _, s := range order[1:] {
		at := int(s)*w.r.stride + lid
		w.link[s] = g.adjacencyOf(s, w.r.lft[at])
		next := g.adjPeer[w.link[s]]
		if next == d {
			continue // a single link waits for nothing
		}
		lane := w.sl[int(next)*w.r.stride+lid]
		w.path = append(w.path[:0], w.link[s], w.link[next])
		if w.lanes[lane].add(w.path) { // the rest of the path is already in this lane
			w.sl[at] = lane
			continue
		}
		w.path = w.path[:0]
		for x := s; x != d; x = g.adjPeer[w.link[x]] {
			w.path = append(w.path, w.link[x])
		}
		found := w.fit()
		if found == w.most {
			return false
		}
		w.sl[at] = uint8(found)
	}
	return true
}

// fit puts the path in the first lane that fits, if necessary a new one, and returns it.
func (w *weaver) fit() int {
	for i, l := range w.lanes {
		if l.add(w.path) {
			return i
		}
	}
	w.lanes = append(w.lanes, newChannels(w.g, w.first[len(w.lanes)%2]))
	w.lanes[len(w.lanes)-1].add(w.path)
	return len(w.lanes) - 1
}

// adjacencyOf returns the adjacency index of a port, or none if it leads to no switch.
func (g *Graph) adjacencyOf(s int32, port uint8) int32 {
	if g.ofPort == nil {
		g.ofPort = make([]int32, len(g.peer))
		for i := range g.ofPort {
			g.ofPort[i] = none
		}
		for a := range int32(g.Switches()) {
			for i := g.adjacent[a]; i < g.adjacent[a+1]; i++ {
				g.ofPort[g.at(a, g.adjPort[i])] = i
			}
		}
	}
	if int(port) > g.ports(s) {
		return none
	}
	return g.ofPort[g.at(s, port)]
}

// channels is the dependency graph of one lane: its nodes are the directed links, and an edge says that
// some path takes the second right after the first. It is kept free of cycles, together with an order of
// the nodes that proves it (Pearce and Kelly: A dynamic topological sort algorithm, 2006).
type channels struct {
	g     *Graph
	edges []edge  // by first link, and by port of the second link at the switch between them
	start []int32 // where the edges of a link begin
	into  [][]int32
	order []int32 // by link: its position
	// State of one search.
	seen     []bool
	forward  []int32
	backward []int32
	stack    []int32
	added    []int32 // edges added by the current path, in case they must be removed: pairs of links
	places   []int32
}

// upThenDown returns two orders of links, as positions by link. All paths that go up towards the roots of
// up/down and then down fit the first: in trees those are all shortest paths between hosts, so that
// nothing needs to be reordered. Paths that go down and then up, from root to root, fit the second.
func upThenDown(g *Graph) (up, down []int32) {
	ranks := rank(g, g.roots())
	switches := make([]int32, g.Switches())
	for s := range switches {
		switches[s] = int32(s)
	}
	slices.SortFunc(switches, func(a, b int32) int {
		if above(ranks, a, b) {
			return -1
		}
		return 1
	})
	up, down = make([]int32, len(g.adjPeer)), make([]int32, len(g.adjPeer))
	place := int32(0)
	take := func(order []int32, s int32, rises bool) {
		for i := g.adjacent[s]; i < g.adjacent[s+1]; i++ {
			if above(ranks, g.adjPeer[i], s) == rises {
				order[i] = place
				place++
			}
		}
	}
	fromBelow := func(order []int32) {
		for k := len(switches) - 1; k >= 0; k-- {
			take(order, switches[k], true)
		}
	}
	fromAbove := func(order []int32) {
		for _, s := range switches {
			take(order, s, false)
		}
	}
	fromBelow(up)
	fromAbove(up)
	place = 0
	fromAbove(down)
	fromBelow(down)
	return up, down
}

func newChannels(g *Graph, order []int32) *channels {
	n := len(g.adjPeer)
	c := &channels{g: g, start: make([]int32, n+1), into: make([][]int32, n), order: slices.Clone(order), seen: make([]bool, n)}
	for i := range n {
		t := g.adjPeer[i]
		c.start[i+1] = c.start[i] + g.adjacent[t+1] - g.adjacent[t]
	}
	c.edges = make([]edge, c.start[n])
	return c
}

// edge says whether some path takes two links one after the other.
type edge uint8

const (
	unused  edge = iota
	taken        // some path does
	closing      // none ever may: it would close a cycle, and edges are permanent
)

func (c *channels) edge(a, b int32) *edge {
	return &c.edges[c.start[a]+b-c.g.adjacent[c.g.adjPeer[a]]]
}

// add adds a path, or changes nothing and returns false if it would close a cycle.
func (c *channels) add(path []int32) bool {
	c.added = c.added[:0]
	for i := range len(path) - 1 {
		a, b := path[i], path[i+1]
		e := c.edge(a, b)
		if *e == taken {
			continue
		}
		if *e == closing || a == b || !c.insert(a, b) {
			if len(c.added) == 0 { // the cause is not an edge of the path itself
				*e = closing
			}
			c.undo()
			return false
		}
		*e = taken
		c.into[b] = append(c.into[b], a)
		c.added = append(c.added, a, b)
	}
	return true
}

func (c *channels) undo() {
	for i := len(c.added) - 2; i >= 0; i -= 2 {
		a, b := c.added[i], c.added[i+1]
		*c.edge(a, b) = unused
		c.into[b] = c.into[b][:len(c.into[b])-1]
	}
}

// insert makes the order fit an edge from a to b; false: it would close a cycle.
func (c *channels) insert(a, b int32) bool {
	if c.order[a] < c.order[b] {
		return true
	}
	ok := c.reach(b, c.order[a], a)
	if ok {
		c.reachBack(a, c.order[b])
		c.reorder()
	}
	for _, x := range c.forward {
		c.seen[x] = false
	}
	for _, x := range c.backward {
		c.seen[x] = false
	}
	c.forward, c.backward = c.forward[:0], c.backward[:0]
	return ok
}

// reach collects the nodes that follow b, up to a position; false: they include a.
func (c *channels) reach(b, place, a int32) bool {
	c.stack = append(c.stack[:0], b)
	c.seen[b] = true
	c.forward = append(c.forward, b)
	for len(c.stack) > 0 {
		x := c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		t := c.g.adjPeer[x]
		for k := c.start[x]; k < c.start[x+1]; k++ {
			if c.edges[k] != taken {
				continue
			}
			y := c.g.adjacent[t] + k - c.start[x]
			if y == a {
				return false
			}
			if !c.seen[y] && c.order[y] < place {
				c.seen[y] = true
				c.forward = append(c.forward, y)
				c.stack = append(c.stack, y)
			}
		}
	}
	return true
}

// reachBack collects the nodes that lead to a, from a position on.
func (c *channels) reachBack(a, place int32) {
	c.stack = append(c.stack[:0], a)
	c.seen[a] = true
	c.backward = append(c.backward, a)
	for len(c.stack) > 0 {
		x := c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		for _, y := range c.into[x] {
			if !c.seen[y] && c.order[y] > place {
				c.seen[y] = true
				c.backward = append(c.backward, y)
				c.stack = append(c.stack, y)
			}
		}
	}
}

// reorder puts the nodes that lead to a before those that follow b, using the positions that they occupy
// now.
func (c *channels) reorder() {
	byPlace := func(x, y int32) int { return int(c.order[x]) - int(c.order[y]) }
	slices.SortFunc(c.forward, byPlace)
	slices.SortFunc(c.backward, byPlace)
	c.places = c.places[:0]
	for _, x := range c.backward {
		c.places = append(c.places, c.order[x])
	}
	for _, x := range c.forward {
		c.places = append(c.places, c.order[x])
	}
	slices.Sort(c.places)
	for i, x := range c.backward {
		c.order[x] = c.places[i]
	}
	for i, x := range c.forward {
		c.order[x] = c.places[len(c.backward)+i]
	}
}

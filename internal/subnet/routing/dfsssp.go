package routing

// routeSSSP gives every LID its shortest paths one after the other, each over the links that the fewest
// paths use so far: a global balance, unlike routeMinHop's balance per switch. It ignores credit loops.
func routeSSSP(g *Graph, _ Options) (*Routes, error) {
	g.index()
	r := newRoutes(g, "sssp")
	s := newSSSP(g, r)
	for d := range int32(g.Switches()) {
		s.toward(d)
	}
	return r, nil
}

// routeDFSSSP does what routeSSSP does, and then spreads the paths over virtual lanes so that no lane has
// a credit loop. The service level of a path is its lane. It fails with errUnroutable if Options.MaxLanes
// are not enough.
func routeDFSSSP(g *Graph, o Options) (*Routes, error) {
	r, err := routeSSSP(g, o)
	if err != nil {
		return nil, err
	}
	r.Engine = "dfsssp"
	lanes := o.MaxLanes
	if lanes == 0 {
		lanes = 8
	}
	if err := spreadLanes(g, r, lanes); err != nil {
		return nil, err
	}
	return r, nil
}

// sssp is the state of balancing shortest paths.
type sssp struct {
	g      *Graph
	r      *Routes
	from   []int32
	list   []int32
	weight []uint64 // by adjacency index: paths over the link
	hosts  []int32
	dist   []uint8
	order  []int32
	nearer []int32  // the links towards a switch, as adjacency indexes, for the switches in order
	begin  []int32  // by position in order: where its links begin in nearer
	cost   []uint64 // by switch: cost of the lightest shortest path to the LID
	next   []int32  // by switch: the first link of that path
	paths  []uint64 // by switch: sources whose path passes it
}

func newSSSP(g *Graph, r *Routes) *sssp {
	n := g.Switches()
	s := &sssp{
		g: g, r: r, weight: make([]uint64, len(g.adjPeer)), hosts: g.hosts(), dist: make([]uint8, n),
		cost: make([]uint64, n), next: make([]int32, n), paths: make([]uint64, n),
	}
	s.from, s.list = g.bySwitch()
	return s
}

func (s *sssp) toward(d int32) {
	if s.from[d] == s.from[d+1] {
		return
	}
	s.order = s.g.distances(d, s.dist, s.order)
	s.links()
	for _, t := range s.list[s.from[d]:s.from[d+1]] {
		target := &s.g.Targets[t]
		for l := range target.Count {
			s.route(int(target.LID)+l, target.Port != 0)
		}
	}
}

// links lists the links that begin a shortest path.
func (s *sssp) links() {
	g := s.g
	s.nearer, s.begin = s.nearer[:0], append(s.begin[:0], 0)
	for _, a := range s.order {
		for i := g.adjacent[a]; i < g.adjacent[a+1]; i++ {
			if s.dist[g.adjPeer[i]]+1 == s.dist[a] {
				s.nearer = append(s.nearer, i)
			}
		}
		s.begin = append(s.begin, int32(len(s.nearer)))
	}
}

// route finds the lightest of the shortest paths from every switch to the first one in order.
func (s *sssp) route(lid int, host bool) {
	g := s.g
	s.cost[s.order[0]] = 0
	s.paths[s.order[0]] = 0
	for k, a := range s.order[1:] {
		best, least := none, ^uint64(0)
		for _, i := range s.nearer[s.begin[k+1]:s.begin[k+2]] {
			if c := s.cost[g.adjPeer[i]] + s.weight[i]; c < least {
				best, least = i, c
			}
		}
		s.cost[a], s.next[a] = least, best
		s.paths[a] = uint64(s.hosts[a])
		s.r.lft[int(a)*s.r.stride+lid] = g.adjPort[best]
	}
	if !host {
		return
	}
	for k := len(s.order) - 1; k > 0; k-- {
		a := s.order[k]
		s.weight[s.next[a]] += s.paths[a]
		s.paths[g.adjPeer[s.next[a]]] += s.paths[a]
	}
}

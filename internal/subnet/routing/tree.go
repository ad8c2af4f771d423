package routing

// SpanningTree connects all switches of each connected part with as few links as possible. Multicast
// packets travel on it, so that none goes in circles.
type SpanningTree struct {
	order []int32 // all switches, parents before children
	up    []int32 // by switch: the adjacency index of the link to its parent, none at a root
	root  []int32 // by switch: the root of its part
}

// NewSpanningTree creates the tree, with the central switch at its root.
func NewSpanningTree(g *Graph) *SpanningTree {
	g.index()
	n := g.Switches()
	t := &SpanningTree{up: make([]int32, n), root: make([]int32, n)}
	for i := range t.root {
		t.root[i] = none
	}
	if n == 0 {
		return t
	}
	t.grow(g, g.centre())
	for s := range int32(n) {
		if t.root[s] == none {
			t.grow(g, s)
		}
	}
	return t
}

func (t *SpanningTree) grow(g *Graph, root int32) {
	head := len(t.order)
	t.order = append(t.order, root)
	t.up[root], t.root[root] = none, root
	for ; head < len(t.order); head++ {
		s := t.order[head]
		for i := g.adjacent[s]; i < g.adjacent[s+1]; i++ {
			if c := g.adjPeer[i]; t.root[c] == none {
				t.root[c], t.up[c] = root, g.adjacencyOf(c, g.adjBack[i])
				t.order = append(t.order, c)
			}
		}
	}
}

// PortMask is a set of ports of a switch.
type PortMask [4]uint64

// Add adds a port.
func (m *PortMask) Add(port uint8) { m[port>>6] |= 1 << (port & 63) }

// Position returns one sixteenth of the set, as in a multicast forwarding table: the 16 ports from 16
// times position on.
func (m *PortMask) Position(position int) uint16 {
	return uint16(m[position>>2] >> (position & 3 * 16))
}

// GroupMember is the location of a member of a multicast group. Receives is false for one that only sends.
type GroupMember struct {
	Switch   int32
	Port     uint8
	Receives bool
}

// Cover returns the part of the tree that a group needs: by switch, the ports to which it forwards the
// group's packets.
func (t *SpanningTree) Cover(g *Graph, members []GroupMember) map[int32]PortMask {
	below := make(map[int32]int, 2*len(members))
	total := map[int32]int{}
	ports := map[int32]PortMask{}
	for _, m := range members {
		below[m.Switch]++
		total[t.root[m.Switch]]++
		mask := ports[m.Switch]
		if m.Receives {
			mask.Add(m.Port)
		}
		ports[m.Switch] = mask
	}
	for k := len(t.order) - 1; k >= 0; k-- {
		s := t.order[k]
		n := below[s]
		if n == 0 || t.up[s] == none {
			continue
		}
		i := t.up[s]
		parent := g.adjPeer[i]
		below[parent] += n
		if n == total[t.root[s]] {
			continue // all members are below: no need to go up
		}
		mine, theirs := ports[s], ports[parent]
		mine.Add(g.adjPort[i])
		theirs.Add(g.adjBack[i])
		ports[s], ports[parent] = mine, theirs
	}
	return ports
}

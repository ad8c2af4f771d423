package subnet

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/wire/ib"
)

// Gap is a pair that has no path: packets from a switch, and so from its hosts, do not reach a LID.
type Gap struct {
	From   int32
	LID    int
	Reason string
}

func (e Gap) String() string {
	return fmt.Sprintf("from switch %d to LID %d: %s", e.From, e.LID, e.Reason)
}

// Reachability follows the forwarding tables from every switch to every LID and reports the pairs that
// they do not connect, at most limit of them, and how many there are in all. table gives the forwarding
// table of a switch. strict asks for paths from switches without hosts to switches without hosts too. Pairs that no
// chain of links connects are not counted.
func Reachability(g *Graph, table func(s int32) []byte, strict bool, limit int) (gaps []Gap, count int) {
	g.index()
	island, hosts := g.islands(), g.hosts()
	const unknown, good, bad = 0, 1, 2
	state := make([]uint8, g.Switches())
	var path []int32
	for i := range g.Targets {
		t := &g.Targets[i]
		for lid := int(t.LID); lid < int(t.LID)+t.Count; lid++ {
			clear(state)
			for s := range int32(g.Switches()) {
				var reason string
				result := uint8(bad)
				at := s
				for path = path[:0]; ; {
					if state[at] != unknown {
						if result = state[at]; result == bad {
							reason = "joins a path that does not get there"
						}
						break
					}
					path = append(path, at)
					state[at] = bad // met again, it is a loop
					port := entry(table(at), lid)
					if at == t.Switch {
						if port == t.Port {
							result = good
						} else {
							reason = fmt.Sprintf("switch %d sends it to port %d, it is at port %d", at, port, t.Port)
						}
						break
					}
					peer, _, ok := g.Peer(at, port)
					if port == NoPort || !ok || port == 0 {
						reason = fmt.Sprintf("switch %d sends it to port %d, where no switch is", at, port)
						break
					}
					at = peer
				}
				for _, p := range path {
					state[p] = result
				}
				if result == good || island[s] != island[t.Switch] || !strict && hosts[s] == 0 && t.Port == 0 {
					continue
				}
				if count++; len(gaps) < limit {
					gaps = append(gaps, Gap{s, lid, reason})
				}
			}
		}
	}
	return gaps, count
}

func entry(table []byte, lid int) uint8 {
	if lid >= len(table) {
		return NoPort
	}
	return table[lid]
}

// A Channel is one direction of a link: out of a port of a switch.
type Channel struct {
	Switch int32
	Port   uint8
}

// Cycle is a credit loop: packets in the buffer at the end of every channel may wait for room in the next, and
// those of the last for the first.
type Cycle struct {
	Lane     uint8
	Channels []Channel
}

// Format shows the loop with the node GUIDs of the switches.
func (c *Cycle) Format(g *Graph) string {
	var b strings.Builder
	fmt.Fprintf(&b, "credit loop of %d links on lane %d:", len(c.Channels), c.Lane)
	for _, x := range c.Channels {
		peer, far, _ := g.Peer(x.Switch, x.Port)
		fmt.Fprintf(&b, " %#016x[%d]->%#016x[%d]", g.GUID[x.Switch], x.Port, g.GUID[peer], far)
	}
	return b.String()
}

// CreditLoop looks for a cycle in what the channels of a lane wait for, over all paths from all switches
// to all LIDs, and returns the first that it finds, nil where there is none. lane tells the lane of a path; nil: all
// are on lane 0. Sources without hosts count where all is true, else only packets of hosts do.
func CreditLoop(g *Graph, table func(s int32) []byte, lane func(s int32, lid ib.LID) uint8, all bool) *Cycle {
	g.index()
	w := newWaits(g)
	if lane == nil {
		w.collectTrees(table, all)
		return w.cycle(0)
	}
	for l := range uint8(16) {
		clear(w.edges)
		if w.collectLane(table, lane, l, all) {
			if c := w.cycle(l); c != nil {
				return c
			}
		}
	}
	return nil
}

// waits is the graph of channels of one lane, with an edge where the second waits for the first.
type waits struct {
	g     *Graph
	hosts []int32
	edges []bool
	start []int32
}

func newWaits(g *Graph) *waits {
	w := &waits{g: g, hosts: g.hosts(), start: make([]int32, len(g.adjPeer)+1)}
	for i, t := range g.adjPeer {
		w.start[i+1] = w.start[i] + g.adjacent[t+1] - g.adjacent[t]
	}
	w.edges = make([]bool, w.start[len(g.adjPeer)])
	return w
}

func (w *waits) set(a, b int32) {
	w.edges[w.start[a]+b-w.g.adjacent[w.g.adjPeer[a]]] = true
}

// collectTrees takes in all paths: those to one LID are a tree, where what enters a switch leaves it by one port.
func (w *waits) collectTrees(table func(s int32) []byte, all bool) {
	g := w.g
	live := make([]bool, g.Switches())
	for i := range g.Targets {
		t := &g.Targets[i]
		for lid := int(t.LID); lid < int(t.LID)+t.Count; lid++ {
			clear(live)
			for s := range int32(g.Switches()) {
				if w.hosts[s] == 0 && !all {
					continue
				}
				last := none
				for at := s; at != t.Switch; {
					next := g.adjacencyOf(at, entry(table(at), lid))
					if next == none {
						break
					}
					if last != none {
						w.set(last, next)
					}
					if live[at] {
						break // from here on it was walked
					}
					live[at] = true
					last, at = next, g.adjPeer[next]
				}
			}
		}
	}
}

// collectLane takes in the paths of one lane, one by one; false: there are none.
func (w *waits) collectLane(table func(s int32) []byte, lane func(s int32, lid ib.LID) uint8, l uint8, all bool) (some bool) {
	g := w.g
	for i := range g.Targets {
		t := &g.Targets[i]
		for lid := int(t.LID); lid < int(t.LID)+t.Count; lid++ {
			for s := range int32(g.Switches()) {
				if w.hosts[s] == 0 && !all || lane(s, ib.LID(lid)) != l {
					continue
				}
				some = true
				last := none
				for at, hops := s, 0; at != t.Switch && hops <= g.Switches(); hops++ {
					next := g.adjacencyOf(at, entry(table(at), lid))
					if next == none {
						break
					}
					if last != none {
						w.set(last, next)
					}
					last, at = next, g.adjPeer[next]
				}
			}
		}
	}
	return some
}

// cycle searches depth first, without recursion.
func (w *waits) cycle(lane uint8) *Cycle {
	g := w.g
	const fresh, open, closed = 0, 1, 2
	state := make([]uint8, len(g.adjPeer))
	next := make([]int32, len(g.adjPeer))
	var stack []int32
	for i := range int32(len(g.adjPeer)) {
		if state[i] != fresh {
			continue
		}
		stack = append(stack[:0], i)
		state[i], next[i] = open, w.start[i]
		for len(stack) > 0 {
			a := stack[len(stack)-1]
			if next[a] == w.start[a+1] {
				state[a] = closed
				stack = stack[:len(stack)-1]
				continue
			}
			k := next[a]
			next[a]++
			if !w.edges[k] {
				continue
			}
			b := g.adjacent[g.adjPeer[a]] + k - w.start[a]
			switch state[b] {
			case fresh:
				state[b], next[b] = open, w.start[b]
				stack = append(stack, b)
			case open:
				return w.cut(stack, b, lane)
			}
		}
	}
	return nil
}

// cut makes the cycle of the end of a stack, which begins with b.
func (w *waits) cut(stack []int32, b int32, lane uint8) *Cycle {
	c := &Cycle{Lane: lane}
	for i := len(stack) - 1; i >= 0; i-- {
		c.Channels = append(c.Channels, w.channel(stack[i]))
		if stack[i] == b {
			break
		}
	}
	for i, j := 0, len(c.Channels)-1; i < j; i, j = i+1, j-1 {
		c.Channels[i], c.Channels[j] = c.Channels[j], c.Channels[i]
	}
	return c
}

func (w *waits) channel(i int32) Channel {
	g := w.g
	at := g.adjPeer[i]
	port := g.adjBack[i]
	peer, far, _ := g.Peer(at, port)
	return Channel{peer, far}
}

package routing

import (
	"github.com/softvpi/softvpi/wire/ib"
)

// noLane is the lane of packets that an SL-to-VL table drops (IBA 7.6.6), and of subnet management, for
// which no data packet waits.
const noLane = 15

// A Channel is one direction of a link: out of a port of a switch.
type Channel struct {
	Switch int32
	Port   uint8
}

// LaneRules say which lanes packets use.
type LaneRules struct {
	// SL returns the service level of packets from an adapter, given by its index in Graph.Targets, to a
	// LID; nil: always 0.
	SL func(source int, lid ib.LID) uint8
	// VL returns the lane on which packets with a service level leave a switch, given the ports of arrival
	// and departure; 15: they are dropped.
	VL func(s int32, in, out, sl uint8) uint8
}

// Cycle is a credit loop: packets in the lane's buffer at the end of every channel may wait for room in
// the next one, and those of the last for the first.
type Cycle struct {
	Channels []Channel
	Lanes    []uint8
}

// CreditLoop looks for a cycle in the dependencies among lane buffers, over the paths of all adapters to
// all LIDs with the switches' SL-to-VL tables, and returns the first that it finds, or nil.
func CreditLoop(g *Graph, table func(s int32) []byte, l LaneRules) *Cycle {
	g.index()
	w := newWaits(g)
	for i := range g.Targets {
		if g.Targets[i].Port == 0 {
			continue
		}
		for j := range g.Targets {
			t := &g.Targets[j]
			for lid := int(t.LID); i != j && lid < int(t.LID)+t.Count; lid++ {
				w.walk(i, t, lid, table, &l)
			}
		}
	}
	return w.cycle()
}

// waits is the dependency graph of the buffers of all lanes. An edge is a channel and one that follows it;
// those of channel i begin at start[i]. lanes has, by edge and lane of the first channel, the lanes of the
// second that are waited for.
type waits struct {
	g     *Graph
	start []int32
	lanes [][16]uint16
}

func newWaits(g *Graph) *waits {
	w := &waits{g: g, start: make([]int32, len(g.adjPeer)+1)}
	for i, t := range g.adjPeer {
		w.start[i+1] = w.start[i] + g.adjacent[t+1] - g.adjacent[t]
	}
	w.lanes = make([][16]uint16, w.start[len(g.adjPeer)])
	return w
}

// walk adds the path from an adapter to a LID.
func (w *waits) walk(source int, t *Target, lid int, table func(s int32) []byte, l *LaneRules) {
	g := w.g
	sl := uint8(0)
	if l.SL != nil {
		sl = l.SL(source, ib.LID(lid))
	}
	at, in := g.Targets[source].Switch, g.Targets[source].Port
	last, lane := none, uint8(0)
	for hops := 0; at != t.Switch && hops <= g.Switches(); hops++ {
		out := entry(table(at), lid)
		next := g.adjacencyOf(at, out)
		if next == none {
			return
		}
		vl := l.VL(at, in, out, sl)
		if vl >= noLane {
			return
		}
		if last != none {
			w.lanes[w.start[last]+next-g.adjacent[at]][lane] |= 1 << vl
		}
		last, lane, at, in = next, vl, g.adjPeer[next], g.adjBack[next]
	}
}

// cycle searches depth first, without recursion. A vertex is a channel and a lane.
func (w *waits) cycle() *Cycle {
	g := w.g
	const fresh, open, closed = 0, 1, 2
	state := make([]uint8, 16*len(g.adjPeer))
	next := make([]int32, len(state)) // index of the channel's next edge times 16, plus the lane
	var stack []int32
	for i := range int32(len(state)) {
		if state[i] != fresh {
			continue
		}
		stack = append(stack[:0], i)
		state[i] = open
		for len(stack) > 0 {
			v := stack[len(stack)-1]
			a, lane := v/16, v%16
			if next[v] == 16*(w.start[a+1]-w.start[a]) {
				state[v] = closed
				stack = stack[:len(stack)-1]
				continue
			}
			k, vl := next[v]/16, next[v]%16
			next[v]++
			if w.lanes[w.start[a]+k][lane]>>vl&1 == 0 {
				continue
			}
			switch b := 16*(g.adjacent[g.adjPeer[a]]+k) + vl; state[b] {
			case fresh:
				state[b] = open
				stack = append(stack, b)
			case open:
				return w.loop(stack, b)
			}
		}
	}
	return nil
}

// loop returns the cycle at the end of a stack, which begins with b.
func (w *waits) loop(stack []int32, b int32) *Cycle {
	from := len(stack) - 1
	for stack[from] != b {
		from--
	}
	c := &Cycle{}
	for _, v := range stack[from:] {
		c.Channels, c.Lanes = append(c.Channels, w.channel(v/16)), append(c.Lanes, uint8(v%16))
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

func entry(table []byte, lid int) uint8 {
	if lid >= len(table) {
		return NoPort
	}
	return table[lid]
}

package simulate

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/simulate/scenario"
)

const (
	// shortest is what the shortest frame takes on the wire.
	shortest = 60 + onWire
	// leastReach is how long a frame must take over each link between two shards. Over shorter ones they would wait for each other more
	// than they do.
	leastReach = 200 * time.Nanosecond
	// mostHosts is how many hosts of a switch are in its own shard; if it has more, so many at a time are shards of their own.
	mostHosts = 16
	far       = time.Duration(1) << 60
)

// partition is the network in parts that share nothing but frames: a switch and its hosts, or another switch. It follows from the
// topology alone, so that the results of a run do not depend on how many processors there are for its parts.
type partition struct {
	of    []int32 // by node: its shard
	count int
	// lookahead is the shortest time that a frame takes from one shard to another.
	lookahead time.Duration
}

// reach returns how long the shortest frame takes over a link, at least.
func reach(l *scenario.Link) time.Duration {
	return l.Delay + max(time.Duration(shortest*8e9/l.Rate)-1, 0)
}

// divide divides a network into parts.
func divide(g *scenario.Graph) *partition {
	p := &partition{of: make([]int32, len(g.Nodes)), lookahead: far}
	group := make([]int, len(g.Nodes))
	for i := range group {
		group[i] = i
	}
	root := func(i int) int {
		for group[i] != i {
			group[i] = group[group[i]]
			i = group[i]
		}
		return i
	}
	join := func(a, b int) {
		a, b = root(a), root(b)
		group[max(a, b)] = min(a, b)
	}
	for i := range g.Nodes {
		gather(g, i, join)
	}
	number := map[int]int32{}
	for i := range g.Nodes {
		k, ok := number[root(i)]
		if !ok {
			k = int32(len(number))
			number[root(i)] = k
		}
		p.of[i] = k
	}
	p.count = len(number)
	for i := range g.Links {
		if l := &g.Links[i]; p.of[l.A] != p.of[l.B] {
			p.lookahead = min(p.lookahead, reach(l))
		}
	}
	return p
}

// gather joins what is in one shard with a switch: its hosts, if they are not many, and switches that are near. Many hosts are joined
// with each other.
func gather(g *scenario.Graph, node int, join func(a, b int)) {
	if g.Nodes[node].Host {
		return
	}
	var hosts []int
	for _, i := range g.Nodes[node].Links {
		l := &g.Links[i]
		other, _ := l.Other(node)
		switch {
		case reach(l) < leastReach:
			join(node, other)
		case g.Nodes[other].Host && !slices.Contains(hosts, other):
			hosts = append(hosts, other)
		}
	}
	for i, h := range hosts {
		if len(hosts) <= mostHosts {
			join(node, h)
		} else {
			join(hosts[i-i%mostHosts], h)
		}
	}
}

// sides puts the shards on two sides, so that all links between them lead from one to the other; false: there are circles of an odd
// number of shards, or no links, and all are on one.
func sides(shards []shard) bool {
	side := make([]int, len(shards)) // 1 or 2; 0: not known yet
	two := false
	for i := range shards {
		if side[i] > 0 {
			continue
		}
		side[i] = 1
		for next := []int{i}; len(next) > 0; next = next[1:] {
			at := next[0]
			for _, x := range shards[at].boxes {
				switch to := x.to.number; {
				case side[to] == 0:
					side[to], two = 3-side[at], true
					next = append(next, to)
				case side[to] == side[at]:
					return false
				}
			}
		}
	}
	for i := range shards {
		shards[i].side = side[i] - 1
	}
	return two
}

package routing

import (
	"fmt"
)

// hole is a pair without a path: packets from a switch, and so from its hosts, do not reach a LID.
type hole struct {
	From   int32
	LID    int
	Reason string
}

func (e hole) String() string {
	return fmt.Sprintf("from switch %d to LID %d: %s", e.From, e.LID, e.Reason)
}

// reachability follows the forwarding tables from every switch to every LID. It returns at most limit of the pairs
// that they do not connect, and how many there are. table returns the forwarding table of a switch. With strict,
// paths between switches without hosts are required too. Pairs that no links connect do not count.
func reachability(g *Graph, table func(s int32) []byte, strict bool, limit int) (gaps []hole, count int) {
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
					state[at] = bad // met again on the way, it is a loop
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
					gaps = append(gaps, hole{s, lid, reason})
				}
			}
		}
	}
	return gaps, count
}

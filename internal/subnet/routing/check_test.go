package routing

import (
	"fmt"
)

// hole is a pair that has no path: packets from a switch, and so from its hosts, do not reach a LID.
type hole struct {
	From   int32
	LID    int
	Reason string
}

func (e hole) String() string {
	return fmt.Sprintf("from switch %d to LID %d: %s", e.From, e.LID, e.Reason)
}

// reachability follows the forwarding tables from every switch to every LID and reports the pairs that
// they do not connect, at most limit of them, and how many there are in all. table gives the forwarding
// table of a switch. strict asks for paths from switches without hosts to switches without hosts too. Pairs that no
// chain of links connects are not counted.
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
					gaps = append(gaps, hole{s, lid, reason})
				}
			}
		}
	}
	return gaps, count
}

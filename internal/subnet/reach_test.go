package subnet

import (
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// end is an end port with its LID.
type end struct {
	n   *benchNode
	p   uint8
	lid ib.LID
}

func (b *bench) ends() (list []end) {
	for _, n := range b.nodes {
		if n.info.NodeType == mad.NodeSwitch {
			list = append(list, end{n, 0, n.ports[0].info.LID})
			continue
		}
		for p := 1; p < len(n.ports); p++ {
			if n.ports[p].peer != nil {
				list = append(list, end{n, uint8(p), n.ports[p].info.LID})
			}
		}
	}
	return list
}

// send follows a packet to a LID from an end port through the tables of the switches and returns where it arrives.
func (b *bench) send(from end, to ib.LID) (end, bool) {
	at, in := from.n, from.p
	if from.p != 0 {
		if at.ports[from.p].info.PortState != mad.PortActive {
			return end{}, false
		}
		at, in = at.ports[from.p].peer, from.n.ports[from.p].far
	}
	for range 300 {
		if at.info.NodeType != mad.NodeSwitch || in == 0 && at != from.n {
			return end{at, in, at.ports[in].info.LID}, true
		}
		out := at.lft[to]
		if out == 0 {
			return end{at, 0, at.ports[0].info.LID}, true
		}
		if int(out) >= len(at.ports) || at.ports[out].peer == nil || at.ports[out].info.PortState != mad.PortActive {
			return end{}, false
		}
		at, in = at.ports[out].peer, at.ports[out].far
	}
	return end{}, false
}

// connected returns the nodes that links connect with a node.
func (b *bench) connected(from *benchNode) map[*benchNode]bool {
	seen := map[*benchNode]bool{from: true}
	queue := []*benchNode{from}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if n.info.NodeType != mad.NodeSwitch && n != from {
			continue
		}
		for p := range n.ports {
			if q := n.ports[p].peer; q != nil && !seen[q] && !q.silent {
				seen[q] = true
				queue = append(queue, q)
			}
		}
	}
	return seen
}

// check checks that every host reaches every LID, that all LIDs differ and that all links are active.
func (b *bench) check(from *benchNode) {
	b.t.Helper()
	part := b.connected(from)
	owner := map[ib.LID]end{}
	var ends []end
	for _, e := range b.ends() {
		if !part[e.n] {
			continue
		}
		ends = append(ends, e)
		if o, taken := owner[e.lid]; taken || e.lid == 0 {
			b.t.Fatalf("%s port %d has LID %d, which %v has too, or none", e.n.name, e.p, e.lid, o)
		}
		owner[e.lid] = e
	}
	for _, e := range ends {
		for _, to := range ends {
			if e.n.info.NodeType == mad.NodeSwitch && to.p == 0 || e == to {
				continue
			}
			if got, ok := b.send(e, to.lid); !ok || got.n != to.n || got.p != to.p {
				b.t.Fatalf("from %s port %d to LID %d, %s port %d: arrived %v at %v", e.n.name, e.p, to.lid, to.n.name, to.p, ok, got.n)
			}
		}
	}
}

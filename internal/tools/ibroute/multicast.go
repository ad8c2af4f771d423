package ibroute

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// branch is a node of a multicast tree, as reached from the source.
type branch struct {
	*hop
	way    ibdiag.Route
	up     *branch
	out    uint8 // port of up that leads here
	dist   int
	target bool
}

// multicast follows the group's tree from the end of a route to a port.
func (t *trace) multicast(from, to ibdiag.Route) bool {
	target, ok := t.at(to)
	if !ok {
		t.Warnf("find_target_portguid", "can't find to port\n")
		return false
	}
	end := t.search(from, target.node.PortGUID)
	if end == nil {
		t.Warnf("get_route", "can't find a multicast route from src to dest")
		return false
	}
	t.showBranch(end)
	return true
}

// search searches the tree breadth first. It visits no node twice, so that a circle ends the search.
func (t *trace) search(from ibdiag.Route, target uint64) *branch {
	const where = "find_mcpath"
	root, ok := t.at(from)
	if !ok {
		t.Warnf(where, "can't reach node %s", from)
		return nil
	}
	start := &branch{hop: root, way: from}
	if root.node.PortGUID == target {
		if root.node.NodeType != mad.NodeSwitch {
			t.Warnf(where, "ibtracert from CA to CA is unsupported")
			return nil
		}
		start.target = true
		return start
	}
	seen := map[uint64]bool{root.node.NodeGUID: true}
	for queue := []*branch{start}; len(queue) > 0 && t.Context.Err() == nil; queue = queue[1:] {
		b := queue[0]
		if b.dist >= maxTrace {
			continue
		}
		for _, next := range t.branches(b) {
			if next.node.PortGUID == target {
				next.target = true
				return next
			}
			if seen[next.node.NodeGUID] {
				if next.node.NodeType == mad.NodeSwitch {
					t.endNode(true, "ERR: circle discovered at", next.hop)
				}
				continue
			}
			seen[next.node.NodeGUID] = true
			queue = append(queue, next)
		}
	}
	return nil
}

// branches returns the nodes to which a node forwards the group.
func (t *trace) branches(b *branch) []*branch {
	const where = "find_mcpath"
	var next []*branch
	if b.node.NodeType != mad.NodeSwitch {
		if b.up != nil {
			return nil
		}
		way := b.way
		if len(way.Path) > 1 {
			way.Path = way.Path[:len(way.Path)-1]
		} else if w, ok := t.extend(way, int(b.num)); ok {
			way = w
		}
		if h, ok := t.at(way); ok {
			if len(b.way.Path) > 1 {
				h.num = b.way.Path[len(b.way.Path)-1]
			}
			next = append(next, &branch{hop: h, way: way, up: b, out: b.num, dist: b.dist + 1})
		}
		return next
	}
	ports, err := t.members(b)
	if err != nil {
		t.Warnf(where, "skipping bad Switch 0x%x", b.node.NodeGUID)
		return nil
	}
	for _, port := range ports {
		if b.up != nil && port == b.num {
			continue
		}
		p, err := t.PortInfo(b.way, uint32(port))
		if err != nil {
			t.Warnf(where, "can't reach node %s port %d", b.way, port)
			continue
		}
		if p.PortPhysicalState != mad.PhysicalLinkUp {
			continue
		}
		way, ok := t.extend(b.way, int(port))
		if !ok {
			continue
		}
		h, ok := t.at(way)
		if !ok {
			t.Warnf(where, "NodeInfo on %s port %d failed, skipping port", way, port)
			continue
		}
		next = append(next, &branch{hop: h, way: way, up: b, out: port, dist: b.dist + 1})
	}
	return next
}

// members returns the ports, from 1, to which a switch forwards the group.
func (t *trace) members(b *branch) ([]uint8, error) {
	sw, err := t.SwitchInfo(b.way)
	if err != nil {
		return nil, err
	}
	entry := int(t.mlid) - int(ib.LIDFirstMulticast)
	if entry >= int(sw.MulticastFDBCap) {
		return nil, fmt.Errorf("the table ends before MLID 0x%x", t.mlid)
	}
	const inBlock = len(mad.MulticastForwardingTable{})
	var ports []uint8
	for first := 0; first <= int(b.node.NumPorts); first += portsInMask {
		a, err := t.Get(b.way, mad.AttrMulticastForwardingTable, uint32(entry/inBlock)|uint32(first/portsInMask)<<28)
		if err != nil {
			return nil, err
		}
		m, err := mad.ParseMulticastForwardingTable(a.Data[:])
		if err != nil {
			return nil, err
		}
		for i := range portsInMask {
			if port := first + i; m[entry%inBlock]>>i&1 != 0 && port > 0 && port <= int(b.node.NumPorts) {
				ports = append(ports, uint8(port))
			}
		}
	}
	return ports, nil
}

// showBranch shows the path from the root to a node.
func (t *trace) showBranch(b *branch) {
	end := func(prompt string) {
		t.Printf("%s %s 0x%x port %d lid %d-%d \"%s\"\n", prompt, kind(b.node.NodeType), b.node.NodeGUID, b.num, b.port.LID, b.lastLID(),
			b.name)
	}
	if b.up == nil {
		end("From")
	} else {
		t.showBranch(b.up)
		if t.plain {
			t.Printf("[%d] -> %s {%s}[%d]\n", b.out, kind(b.node.NodeType), ibdiag.Hex64(b.node.NodeGUID), b.num)
		} else {
			t.Printf("[%d] -> %s 0x%x[%d] lid %d \"%s\"\n", b.out, kind(b.node.NodeType), b.node.NodeGUID, b.num, b.port.LID, b.name)
		}
	}
	if b.target {
		end("To")
	}
}

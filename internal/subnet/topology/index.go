package topology

import (
	"slices"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// NodeOfGUID returns the node with a node GUID, or None.
func (n *Subnet) NodeOfGUID(guid uint64) int32 {
	if i, ok := n.byNode[guid]; ok {
		return i
	}
	return None
}

// Same returns the node with the same GUID, type and number of ports as info; nil if there is none, or no
// subnet.
func (n *Subnet) Same(info *mad.NodeInfo) *Node {
	if n == nil {
		return nil
	}
	i, there := n.byNode[info.NodeGUID]
	if !there || n.Nodes[i].Info.NodeType != info.NodeType || n.Nodes[i].Info.NumPorts != info.NumPorts {
		return nil
	}
	return &n.Nodes[i]
}

// Register makes EndPortOfGUID find an end port by its GUID.
func (n *Subnet) Register(p int32) { n.byPort[n.Ports[p].GUID] = p }

// EndPorts returns the end ports that can be reached and have been read, sorted by port GUID.
func (n *Subnet) EndPorts() []int32 {
	var list []int32
	for i := range n.Ports {
		if n.Ports[i].Reach && n.Ports[i].Known {
			list = append(list, int32(i))
		}
	}
	slices.SortFunc(list, func(a, b int32) int {
		if n.Ports[a].GUID < n.Ports[b].GUID {
			return -1
		}
		return 1
	})
	return list
}

// Managed calls f for all ports that are managed by an end port: itself, or the ports of its switch.
func (n *Subnet) Managed(p int32, f func(q int32)) {
	if !n.IsSwitch(p) {
		f(p)
		return
	}
	node := &n.Nodes[n.Ports[p].Node]
	for i := range int32(node.Info.NumPorts) + 1 {
		if n.Ports[node.First+i].Known {
			f(node.First + i)
		}
	}
}

// IndexLIDs rebuilds the index of end ports by their current LIDs.
func (n *Subnet) IndexLIDs() {
	top := ib.LID(0)
	for i := range n.Ports {
		if p := &n.Ports[i]; p.Reach && p.Info.LID <= ib.LIDMaxUnicast {
			top = max(top, p.Info.LID+1<<p.Info.LMC-1)
		}
	}
	n.byLID = make([]int32, int(top)+1)
	for i := range n.byLID {
		n.byLID[i] = None
	}
	for i := range n.Ports {
		p := &n.Ports[i]
		if !p.Reach || p.Info.LID == 0 || p.Info.LID > ib.LIDMaxUnicast || p.Shares {
			continue
		}
		for l := range 1 << p.Info.LMC {
			n.byLID[int(p.Info.LID)+l] = int32(i)
		}
	}
}

// EndPortOfLID returns the end port that has a LID, or None.
func (n *Subnet) EndPortOfLID(lid ib.LID) int32 {
	if int(lid) < len(n.byLID) {
		return n.byLID[lid]
	}
	return None
}

// EndPortOfGUID returns the end port with a port GUID, or None.
func (n *Subnet) EndPortOfGUID(guid uint64) int32 {
	if p, ok := n.byPort[guid]; ok {
		return p
	}
	return None
}

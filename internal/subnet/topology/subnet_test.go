package topology

import (
	"slices"
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// chain is an adapter with the manager, two switches in a row, and an adapter at the second, all discovered.
func chain() (n *Subnet, self, far int32) {
	n = New()
	add := func(kind mad.NodeType, ports uint8) int32 {
		guid := uint64(len(n.Nodes)+1) << 8
		return n.Nodes[n.Add(mad.NodeInfo{NodeType: kind, NumPorts: ports, NodeGUID: guid})].First
	}
	a, s1, s2, b := add(mad.NodeCA, 1), add(mad.NodeSwitch, 4), add(mad.NodeSwitch, 4), add(mad.NodeCA, 2)
	link := func(p, q int32) {
		n.Ports[p].Peer, n.Ports[q].Peer = q, p
		n.Ports[n.Entry(q)].From = p
	}
	link(a+1, s1+2)
	link(s1+3, s2+1)
	link(s2+4, b+2)
	for i, p := range []int32{a + 1, s1, s2, b + 2} {
		port := &n.Ports[p]
		port.Reach, port.Known, port.GUID, port.Info.LID = true, true, uint64(0x40-i), ib.LID(8*i+8)
		n.Register(p)
	}
	n.Self = a + 1
	return n, a + 1, b + 2
}

// TestRoute: a directed route names the ports by which packets leave, starting at the manager.
func TestRoute(t *testing.T) {
	n, self, far := chain()
	for _, c := range []struct {
		p      int32
		beyond bool
		want   []uint8
	}{{self, false, nil}, {self, true, []uint8{1}}, {far, false, []uint8{1, 3, 4}}, {n.Nodes[2].First + 2, true, []uint8{1, 3, 2}}} {
		if got := n.Route(c.p, c.beyond, nil); !slices.Equal(got, c.want) {
			t.Errorf("to %s, beyond %v: %v, want %v", n.Name(c.p), c.beyond, got, c.want)
		}
	}
}

// TestIndexes: the indexes find end ports and nodes by their current LIDs and GUIDs, and nothing for unused ones.
func TestIndexes(t *testing.T) {
	n, self, far := chain()
	n.Ports[far].Info.LMC = 2
	n.IndexLIDs()
	for lid, want := range map[ib.LID]int32{8: self, 9: None, 32: far, 35: far, 36: None, 0: None, ib.LIDPermissive: None} {
		if got := n.EndPortOfLID(lid); got != want {
			t.Errorf("LID %d: port %d, want %d", lid, got, want)
		}
	}
	if n.EndPortOfGUID(0x3d) != far || n.EndPortOfGUID(0x3c) != None {
		t.Errorf("GUIDs lead to ports %d and %d, want that of the far adapter and none", n.EndPortOfGUID(0x3d), n.EndPortOfGUID(0x3c))
	}
	if got, want := n.EndPorts(), []int32{far, n.Nodes[2].First, n.Nodes[1].First, self}; !slices.Equal(got, want) {
		t.Errorf("end ports %v, want %v, in the order of their GUIDs", got, want)
	}
	if n.NodeOfGUID(0x200) != 1 || n.NodeOfGUID(1) != None {
		t.Errorf("GUIDs lead to nodes %d and %d, want 1 and none", n.NodeOfGUID(0x200), n.NodeOfGUID(1))
	}
	same, other := n.Nodes[1].Info, n.Nodes[1].Info
	other.NumPorts++
	if n.Same(&same) != &n.Nodes[1] || n.Same(&other) != nil || (*Subnet)(nil).Same(&same) != nil {
		t.Error("Same does not find the switch, or finds one that differs")
	}
}

// TestManaged: an end port stands for itself, and port 0 of a switch for all ports of the switch that were read.
func TestManaged(t *testing.T) {
	n, self, _ := chain()
	first := n.Nodes[1].First
	n.Ports[first+3].Known = true
	for p, want := range map[int32][]int32{self: {self}, first: {first, first + 3}} {
		var got []int32
		n.Managed(p, func(q int32) { got = append(got, q) })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", n.Name(p), got, want)
		}
	}
}

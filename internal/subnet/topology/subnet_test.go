package topology

import (
	"slices"
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// chain is an adapter with the manager, two switches behind one another, and an adapter at the second, all found.
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

// A directed route names the ports by which packets leave, from the manager on.
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

// The indexes find end ports and nodes by what they have now, and nothing where there is nothing.
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
		t.Errorf("GUIDs: %d and %d", n.EndPortOfGUID(0x3d), n.EndPortOfGUID(0x3c))
	}
	if got, want := n.EndPorts(), []int32{far, n.Nodes[2].First, n.Nodes[1].First, self}; !slices.Equal(got, want) {
		t.Errorf("end ports %v, want %v: by GUID", got, want)
	}
	if n.NodeOfGUID(0x200) != 1 || n.NodeOfGUID(1) != None {
		t.Errorf("nodes %d and %d", n.NodeOfGUID(0x200), n.NodeOfGUID(1))
	}
	same, other := n.Nodes[1].Info, n.Nodes[1].Info
	other.NumPorts++
	if n.Same(&same) != &n.Nodes[1] || n.Same(&other) != nil || (*Subnet)(nil).Same(&same) != nil {
		t.Error("the switch is not found as the same, or one with another port is")
	}
}

// An end port stands for itself, port 0 of a switch for all ports of the switch that were read.
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

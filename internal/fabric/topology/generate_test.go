package topology

import (
	"errors"
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/wire/mad"
)

// connected reports whether every node can be reached from the first.
func connected(t *Topology) bool {
	seen := make([]bool, len(t.Nodes))
	queue := []int{0}
	seen[0] = true
	for len(queue) > 0 {
		n := &t.Nodes[queue[0]]
		queue = queue[1:]
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Linked() && !seen[p.Peer] {
				seen[p.Peer] = true
				queue = append(queue, int(p.Peer))
			}
		}
	}
	for _, s := range seen {
		if !s {
			return false
		}
	}
	return true
}

func TestGeneratedCounts(t *testing.T) {
	tree := func(radix, levels, hosts, ports int) func() (*Topology, error) {
		return func() (*Topology, error) {
			return FatTree(FatTreeShape{Radix: radix, Levels: levels, Hosts: hosts, HostPorts: ports}, Rate{})
		}
	}
	for _, c := range []struct {
		name                   string
		make                   func() (*Topology, error)
		hosts, switches, links int
	}{
		{"star", func() (*Topology, error) { return Star(5, Rate{}) }, 5, 1, 5},
		// The shapes of the table of OpenSM's sweep times.
		{"two levels of 16 with 104", tree(16, 2, 104, 1), 104, 21, 208},
		{"two levels of 16", tree(16, 2, 0, 1), 128, 24, 256},
		{"two levels of 36", tree(36, 2, 0, 1), 648, 54, 1296},
		{"three levels of 16", tree(16, 3, 0, 1), 1024, 320, 3072},
		{"three levels of 36 with 5184", tree(36, 3, 5184, 1), 5184, 900, 15552},
		{"three levels of 36", tree(36, 3, 0, 1), 11664, 1620, 34992},
		{"three levels of 48", tree(48, 3, 0, 1), 27648, 2880, 82944},
		{"two ports a host", tree(8, 2, 0, 2), 16, 12, 64},
		{"ring", func() (*Topology, error) { return Torus([]int{5}, 2, Rate{}) }, 10, 5, 15},
		{"torus", func() (*Topology, error) { return Torus([]int{4, 3}, 1, Rate{}) }, 12, 12, 12 + 24},
		{"cube", func() (*Topology, error) { return Torus([]int{2, 2, 2}, 1, Rate{}) }, 8, 8, 8 + 12},
		{"dragonfly", func() (*Topology, error) { return Dragonfly(9, 4, 2, 2, Rate{}) }, 72, 36, 72 + 9*6 + 36},
		{"dragonfly of few groups", func() (*Topology, error) { return Dragonfly(3, 4, 2, 2, Rate{}) }, 24, 12, 24 + 3*6 + 3},
	} {
		top, err := c.make()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		hosts, switches, _, links := top.Counts()
		if hosts != c.hosts || switches != c.switches || links != c.links {
			t.Errorf("%s: %d hosts, %d switches, %d links; want %d, %d, %d", c.name, hosts, switches, links, c.hosts, c.switches, c.links)
		}
		if !connected(top) {
			t.Errorf("%s: not connected", c.name)
		}
		if top.Nodes[0].Type != mad.NodeCA {
			t.Errorf("%s: begins with a %v", c.name, top.Nodes[0].Type)
		}
		lines := make([]int, len(top.Nodes))
		if err := top.uniqueGUIDs(lines); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestDragonflyGroups: each pair of groups of a dragonfly has just one link, and no switch more global links than
// allowed.
func TestDragonflyGroups(t *testing.T) {
	const groups, switches, hosts, global = 9, 4, 2, 2
	top, err := Dragonfly(groups, switches, hosts, global, Rate{Width: mad.Width12x, Speed: mad.SpeedHDR})
	if err != nil {
		t.Fatal(err)
	}
	first := groups * switches * hosts
	joined := map[string]int{}
	for s := range groups * switches {
		n := &top.Nodes[first+s]
		for p := hosts + switches; p < len(n.Ports); p++ {
			if n.Ports[p].Linked() {
				joined[fmt.Sprint(s/switches, (int(n.Ports[p].Peer)-first)/switches)]++
			}
			if n.Ports[p].Width != mad.Width12x || n.Ports[p].Speed != mad.SpeedHDR {
				t.Errorf("port %+v, want HDR at 12X", n.Ports[p])
			}
		}
	}
	for a := range groups {
		for b := range groups {
			want := 1
			if a == b {
				want = 0
			}
			if got := joined[fmt.Sprint(a, b)]; got != want {
				t.Errorf("%d links of groups %d and %d, want %d", got, a, b, want)
			}
		}
	}
}

func TestGeneratorsRefuse(t *testing.T) {
	for name, err := range map[string]error{
		"hosts":                    second(Star(0, Rate{})),
		"radix":                    second(FatTree(FatTreeShape{Radix: 15, Levels: 2}, Rate{})),
		"levels":                   second(FatTree(FatTreeShape{Radix: 16, Levels: 4}, Rate{})),
		"ports of a host":          second(FatTree(FatTreeShape{Radix: 16, Levels: 2, HostPorts: 3}, Rate{})),
		"number of nodes":          second(FatTree(FatTreeShape{Radix: 254, Levels: 3}, Rate{})),
		"number of dimensions":     second(Torus(nil, 1, Rate{})),
		"size of a dimension":      second(Torus([]int{1}, 1, Rate{})),
		"hosts at a switch":        second(Torus([]int{3}, 253, Rate{})),
		"number of switches":       second(Torus([]int{1024, 1024}, 0, Rate{})),
		"groups":                   second(Dragonfly(10, 4, 2, 2, Rate{})),
		"global links of a switch": second(Dragonfly(1, 4, 2, 260, Rate{})),
		"switches of a group":      second(Dragonfly(1, 0, 2, 1, Rate{})),
	} {
		var e *ParameterError
		if !errors.As(err, &e) || e.Name != name {
			t.Errorf("%v, want an error about %s", err, name)
		}
	}
	var e *ParameterError
	if err := second(FatTree(FatTreeShape{Radix: 16, Levels: 2, Hosts: 129}, Rate{})); !errors.As(err, &e) || e.Name != "hosts" {
		t.Errorf("%v, want an error about hosts", err)
	}
}

func second(_ *Topology, err error) error { return err }

package routing

import (
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
)

// shape builds graphs for tests: switches first, then hosts, then the LIDs of all.
type shape struct {
	t     testing.TB
	g     *Graph
	used  []uint8 // by switch: ports in use, from the first on
	hosts []Target
}

func newShape(t testing.TB, switches, ports int) *shape {
	guids := make([]uint64, switches)
	n := make([]uint8, switches)
	for i := range guids {
		guids[i], n[i] = 0x1000+uint64(i), uint8(ports)
	}
	return &shape{t: t, g: NewGraph(guids, n), used: make([]uint8, switches)}
}

func (s *shape) port(a int) uint8 { s.used[a]++; return s.used[a] }

func (s *shape) link(a, b int) {
	s.t.Helper()
	if err := s.g.Connect(int32(a), s.port(a), int32(b), s.port(b)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shape) host(a int) { s.hosts = append(s.hosts, Target{Switch: int32(a), Port: s.port(a)}) }

// finish assigns the LIDs: one to each switch, a block of 2^lmc to each host.
func (s *shape) finish(lmc int) *Graph {
	s.t.Helper()
	lid := 1
	for i := range int32(s.g.Switches()) {
		s.attach(Target{LID: ib.LID(lid), Count: 1, Switch: i})
		lid++
	}
	for lid%(1<<lmc) != 0 {
		lid++
	}
	for _, h := range s.hosts {
		h.LID, h.Count = ib.LID(lid), 1<<lmc
		s.attach(h)
		lid += 1 << lmc
	}
	return s.g
}

func (s *shape) attach(t Target) {
	s.t.Helper()
	if err := s.g.Attach(t); err != nil {
		s.t.Fatal(err)
	}
}

// tree3 returns a full fat tree with three levels of switches of radix ports.
func tree3(t testing.TB, radix int) *Graph {
	k := radix / 2
	pods := radix
	edge := func(p, i int) int { return p*k + i }
	agg := func(p, i int) int { return pods*k + p*k + i }
	core := func(i int) int { return 2*pods*k + i }
	s := newShape(t, 2*pods*k+k*k, radix)
	for p := range pods {
		for e := range k {
			for range k {
				s.host(edge(p, e))
			}
		}
	}
	for p := range pods {
		for e := range k {
			for a := range k {
				s.link(edge(p, e), agg(p, a))
			}
		}
		for a := range k {
			for u := range k {
				s.link(agg(p, a), core(a*k+u))
			}
		}
	}
	return s.finish(0)
}

// tree2 returns a fat tree with two levels of switches.
func tree2(t testing.TB, leaves, spines, hosts, lmc int) *Graph {
	s := newShape(t, leaves+spines, max(leaves, spines+hosts))
	for l := range leaves {
		for range hosts {
			s.host(l)
		}
	}
	for l := range leaves {
		for p := range spines {
			s.link(l, leaves+p)
		}
	}
	return s.finish(lmc)
}

// ring returns switches in a circle, each with some hosts.
func ring(t testing.TB, n, hosts int) *Graph {
	s := newShape(t, n, hosts+2)
	for i := range n {
		for range hosts {
			s.host(i)
		}
	}
	for i := range n {
		s.link(i, (i+1)%n)
	}
	return s.finish(0)
}

// torus returns switches on a grid that is closed at its ends, each with some hosts.
func torus(t testing.TB, x, y, hosts int) *Graph {
	s := newShape(t, x*y, hosts+4)
	for i := range x * y {
		for range hosts {
			s.host(i)
		}
	}
	for i := range x {
		for j := range y {
			s.link(i*y+j, (i+1)%x*y+j)
			s.link(i*y+j, i*y+(j+1)%y)
		}
	}
	return s.finish(0)
}

// walk appends the links, as indexes of adjacency, of the path from s to the LID at d.
func walk(g *Graph, r *Routes, s, d int32, lid int, path []int32) []int32 {
	for s != d && len(path) < g.Switches() {
		i := g.adjacencyOf(s, r.lft[int(s)*r.stride+lid])
		if i == none {
			return path
		}
		path = append(path, i)
		s = g.adjPeer[i]
	}
	return path
}

package routing

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/ib"
)

// routeWith routes with one engine and checks that every pair is connected.
func routeWith(t rapid.TB, g *Graph, name string, o Options) *Routes {
	t.Helper()
	r, err := engineNamed(name)(g, o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	strict := name == "minhop" || name == "sssp" || name == "dfsssp" || o.ConnectRoots
	if gaps, n := reachability(g, r.Table, strict, 3); n > 0 {
		t.Fatalf("%s: %d pairs are not connected: %v", name, n, gaps)
	}
	return r
}

// loopOf looks for a credit loop on the lanes of the routes. With all, packets of switches without hosts count too:
// for the check they become adapters to which nobody sends.
func loopOf(g *Graph, r *Routes, all bool) *Cycle {
	if all {
		with := *g
		with.Targets = slices.Clone(g.Targets)
		for s, n := range g.hosts() {
			if n == 0 {
				with.Targets = append(with.Targets, Target{Switch: int32(s), Port: 0xfe})
			}
		}
		g = &with
	}
	rules := LaneRules{VL: func(_ int32, _, _, sl uint8) uint8 { return sl }}
	if r.Lanes > 1 {
		rules.SL = func(source int, lid ib.LID) uint8 { return r.SL(g.Targets[source].Switch, lid) }
	}
	return CreditLoop(g, r.Table, rules)
}

// TestEnginesRoute: every engine connects every pair on the shapes it is for, and all but minhop and sssp do so
// without credit loops.
func TestEnginesRoute(t *testing.T) {
	shapes := []struct {
		name    string
		g       *Graph
		engines string
		looping string // engines that must have a loop here
	}{
		{"one switch", tree2(t, 1, 0, 5, 0), "minhop updn ftree sssp dfsssp", ""},
		{"two levels", tree2(t, 8, 4, 4, 0), "minhop updn ftree sssp dfsssp", ""},
		{"two levels, LMC 2", tree2(t, 6, 4, 4, 2), "minhop updn ftree sssp dfsssp", ""},
		{"three levels", tree3(t, 8), "minhop updn ftree sssp dfsssp", ""},
		{"ring", ring(t, 7, 2), "minhop updn sssp dfsssp", "minhop sssp"},
		{"torus", torus(t, 5, 5, 2), "minhop updn sssp dfsssp", "minhop sssp"},
	}
	for _, s := range shapes {
		for _, e := range strings.Fields(s.engines) {
			t.Run(s.name+"/"+e, func(t *testing.T) {
				r := routeWith(t, s.g, e, Options{})
				c := loopOf(s.g, r, e == "dfsssp") // its lanes cover what switches send too
				if want := strings.Contains(s.looping, e) && e != "updn" && e != "dfsssp"; want != (c != nil) {
					t.Fatalf("credit loop %v, want one: %v", c, want)
				}
				if c != nil {
					checkCycle(t, s.g, c)
				}
			})
		}
	}
}

// checkCycle checks that a reported loop follows links of the graph.
func checkCycle(t rapid.TB, g *Graph, c *Cycle) {
	t.Helper()
	for i, x := range c.Channels {
		peer, _, ok := g.Peer(x.Switch, x.Port)
		if next := c.Channels[(i+1)%len(c.Channels)]; !ok || peer != next.Switch {
			t.Fatalf("channel %d of the cycle %v ends at switch %d, the next begins at %d", i, c.Channels, peer, next.Switch)
		}
	}
}

// TestPlantedCreditLoopIsFound: in a triangle whose tables send all three hosts' packets the long way round, each
// link waits for the next, and the check finds the loop.
func TestPlantedCreditLoopIsFound(t *testing.T) {
	g := ring(t, 3, 1)
	r := routeWith(t, g, "minhop", Options{})
	if c := loopOf(g, r, true); c != nil {
		t.Fatalf("shortest paths in a triangle have a loop: %s", c.Format(g))
	}
	for s := range int32(3) {
		for _, target := range g.Targets {
			if target.Switch == (s+2)%3 && target.Port != 0 {
				r.Table(s)[target.LID] = portTo(g, s, (s+1)%3)
			}
		}
	}
	if _, n := reachability(g, r.Table, true, 1); n > 0 {
		t.Fatalf("%d pairs are not connected", n)
	}
	c := loopOf(g, r, false)
	if c == nil {
		t.Fatal("the loop was not found")
	}
	checkCycle(t, g, c)
	if got := c.Format(g); !strings.HasPrefix(got, "credit loop of 3 links: 0x0000000000001") {
		t.Errorf("the loop is shown as %q", got)
	}
}

func portTo(g *Graph, s, to int32) uint8 {
	for p := 1; p <= g.ports(s); p++ {
		if peer, _, ok := g.Peer(s, uint8(p)); ok && peer == to {
			return uint8(p)
		}
	}
	return NoPort
}

// TestReachabilityFindsPlantedFaults: reachability finds a missing entry, an entry that leads to a host, and a
// forwarding loop.
func TestReachabilityFindsPlantedFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant func(g *Graph, r *Routes, lid int)
	}{
		{"no entry", func(g *Graph, r *Routes, lid int) { r.Table(0)[lid] = NoPort }},
		{"to a host", func(g *Graph, r *Routes, lid int) { r.Table(0)[lid] = g.Targets[4].Port }},
		{"loop", func(g *Graph, r *Routes, lid int) {
			r.Table(0)[lid], r.Table(1)[lid] = portTo(g, 0, 1), portTo(g, 1, 0)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := ring(t, 4, 1)
			r := routeWith(t, g, "minhop", Options{})
			lid := int(g.Targets[6].LID) // the host of switch 2
			c.plant(g, r, lid)
			gaps, n := reachability(g, r.Table, true, 10)
			if n == 0 || gaps[0].LID != lid {
				t.Errorf("found %d gaps %v, want some about LID %d", n, gaps, lid)
			}
		})
	}
}

// TestFatTreeRefusesOtherShapes: routeFatTree refuses a graph that is not a tree of levels and names the link.
func TestFatTreeRefusesOtherShapes(t *testing.T) {
	for _, g := range []*Graph{ring(t, 5, 1), torus(t, 3, 3, 1)} {
		_, err := routeFatTree(g, Options{})
		if !errors.Is(err, errUnroutable) || !strings.Contains(err.Error(), "at its own level") {
			t.Errorf("error %v, want one about a link within a level", err)
		}
	}
}

// TestLanesRunOut: DFSSSP refuses when the lanes do not suffice, and Route falls back to the next engine.
func TestLanesRunOut(t *testing.T) {
	g := torus(t, 5, 5, 1)
	if _, err := routeDFSSSP(g, Options{MaxLanes: 1}); !errors.Is(err, errUnroutable) {
		t.Fatalf("error %v, want ErrUnroutable", err)
	}
	r, failed, err := Route(g, []string{"dfsssp"}, Options{MaxLanes: 1})
	if err != nil || len(failed) != 1 || r.Engine != "minhop" {
		t.Errorf("fell back to %v after %v, %v", r, failed, err)
	}
	if _, _, err = Route(g, []string{"dfsssp", "no_fallback"}, Options{MaxLanes: 1}); err == nil {
		t.Error("no_fallback fell back")
	}
}

// TestBalance: in a full fat tree every link of a level carries the same number of the hosts' LIDs.
func TestBalance(t *testing.T) {
	g := tree3(t, 8)
	for _, e := range []string{"minhop", "updn", "ftree", "dfsssp"} {
		r := routeWith(t, g, e, Options{})
		for s := range int32(32) { // the edge switches
			var load [9]int
			for _, target := range g.Targets {
				if target.Port != 0 && target.Switch != s {
					load[r.Table(s)[target.LID]]++
				}
			}
			for p := 5; p <= 8; p++ { // the ports up: 128 hosts less the 4 here over 4 ports
				if load[p] != 31 {
					t.Fatalf("%s: edge %d sends %v LIDs over its ports", e, s, load)
				}
			}
		}
	}
}

// TestFatTreeShiftsDoNotMeet: in a full fat tree routed by ftree, no link is used twice by shift traffic, in which
// every host sends to the host n places on.
func TestFatTreeShiftsDoNotMeet(t *testing.T) {
	g := tree3(t, 8)
	r := routeWith(t, g, "ftree", Options{})
	var hosts []Target
	for _, x := range g.Targets {
		if x.Port != 0 {
			hosts = append(hosts, x)
		}
	}
	for shift := 1; shift < len(hosts); shift++ {
		taken := map[int32]int{}
		for i, from := range hosts {
			to := hosts[(i+shift)%len(hosts)]
			for _, c := range walk(g, r, from.Switch, to.Switch, int(to.LID), nil) {
				if other, ok := taken[c]; ok {
					t.Fatalf("shift %d: hosts %d and %d both send over link %d", shift, other, i, c)
				}
				taken[c] = i
			}
		}
	}
}

// TestLIDsOfAPortSpread: the LIDs of one port take different ways, which is what the LMC is for (IBA 14.4).
func TestLIDsOfAPortSpread(t *testing.T) {
	g := tree2(t, 4, 4, 2, 2)
	r := routeWith(t, g, "minhop", Options{})
	for _, x := range g.Targets {
		if x.Count == 1 {
			continue
		}
		for s := range int32(4) {
			seen := map[uint8]bool{}
			for l := range x.Count {
				seen[r.Table(s)[int(x.LID)+l]] = true
			}
			if s != x.Switch && len(seen) != 4 {
				t.Errorf("switch %d sends the 4 LIDs from %d over %d ports", s, x.LID, len(seen))
			}
		}
	}
}

// drawGraph returns a random, often broken and often unconnected subnet.
func drawGraph(t *rapid.T) *Graph {
	n := rapid.IntRange(1, 14).Draw(t, "switches")
	guids, ports := make([]uint64, n), make([]uint8, n)
	for i := range guids {
		guids[i], ports[i] = uint64(i+1), 12
	}
	g := NewGraph(guids, ports)
	used := make([]uint8, n)
	for range rapid.IntRange(0, 3*n).Draw(t, "links") {
		a, b := rapid.IntRange(0, n-1).Draw(t, "a"), rapid.IntRange(0, n-1).Draw(t, "b")
		if used[a] > 9 || used[b] > 9 || a == b {
			continue
		}
		used[a]++
		used[b]++
		if err := g.Connect(int32(a), used[a], int32(b), used[b]); err != nil {
			t.Fatal(err)
		}
	}
	lid := 1
	for i := range int32(n) {
		for p := range rapid.IntRange(0, 2).Draw(t, "hosts") + 1 {
			x := Target{LID: ib.LID(lid), Count: 1, Switch: i}
			if p > 0 {
				used[i]++
				x.Port = used[i]
			}
			if err := g.Attach(x); err != nil {
				t.Fatal(err)
			}
			lid++
		}
	}
	return g
}

// TestRandomGraphs: for any graph, every pair that links connect is connected by the tables, engines that promise it
// leave no credit loop, and the same graph gives the same tables.
func TestRandomGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		for _, e := range EngineNames() {
			o := Options{MaxLanes: 15, ConnectRoots: rapid.Bool().Draw(t, "connect roots")}
			if _, err := engineNamed(e)(g, o); errors.Is(err, errUnroutable) && e == "ftree" {
				continue
			}
			r := routeWith(t, g, e, o)
			if e != "minhop" && e != "sssp" {
				if c := loopOf(g, r, e == "dfsssp"); c != nil {
					t.Fatalf("%s: %s", e, c.Format(g))
				}
			}
			again, _ := engineNamed(e)(g, o)
			if string(again.lft) != string(r.lft) {
				t.Fatalf("%s gave two different results", e)
			}
		}
	})
}

// TestNoSwitches: a subnet of two adapters without a switch has nothing to route, and no engine fails.
func TestNoSwitches(t *testing.T) {
	for _, name := range EngineNames() {
		if r, err := engineNamed(name)(NewGraph(nil, nil), Options{}); err != nil || r.Top != 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

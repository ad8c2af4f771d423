package routing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
)

// TestCreditLoop: the check finds the credit loops on the lanes that packets use, and no others: those of shortest
// paths in a torus, none with up/down, none with DFSSSP if each service level has the lane of its number, and one
// again if all levels share a lane.
func TestCreditLoop(t *testing.T) {
	g := torus(t, 5, 5, 2)
	identity := func(_ int32, _, _, sl uint8) uint8 { return sl }
	levels := func(r *Routes) func(int, ib.LID) uint8 {
		return func(source int, lid ib.LID) uint8 { return r.SL(g.Targets[source].Switch, lid) }
	}
	minhop, updn, dfsssp := routeWith(t, g, "minhop", Options{}), routeWith(t, g, "updn", Options{}),
		routeWith(t, g, "dfsssp", Options{MaxLanes: 8})
	if dfsssp.Lanes < 2 {
		t.Fatalf("dfsssp uses %d lanes, want 2 or more", dfsssp.Lanes)
	}
	for _, c := range []struct {
		name  string
		r     *Routes
		rules LaneRules
		loop  bool
	}{
		{"minhop", minhop, LaneRules{VL: identity}, true},
		{"up/down", updn, LaneRules{VL: identity}, false},
		{"DFSSSP", dfsssp, LaneRules{SL: levels(dfsssp), VL: identity}, false},
		{"DFSSSP without its levels", dfsssp, LaneRules{VL: identity}, true},
		{"DFSSSP, all levels on lane 0", dfsssp, LaneRules{SL: levels(dfsssp), VL: func(int32, uint8, uint8, uint8) uint8 { return 0 }},
			true},
		{"minhop, and every switch drops what came from another", minhop, LaneRules{VL: func(s int32, in, _, _ uint8) uint8 {
			if _, _, ok := g.Peer(s, in); ok {
				return 15
			}
			return 0
		}}, false},
	} {
		loop := CreditLoop(g, c.r.Table, c.rules)
		if (loop != nil) != c.loop {
			t.Errorf("%s: %v, want a loop: %v", c.name, loop, c.loop)
		}
		if loop != nil {
			checkCycle(t, g, loop)
		}
	}
}

// TestCreditLoopAcrossLanes: a loop whose links are on different lanes is found and reported with the lanes.
func TestCreditLoopAcrossLanes(t *testing.T) {
	g := ring(t, 3, 1)
	r := routeWith(t, g, "minhop", Options{})
	for s := range int32(3) {
		for _, target := range g.Targets {
			if target.Switch == (s+2)%3 && target.Port != 0 {
				r.Table(s)[target.LID] = portTo(g, s, (s+1)%3)
			}
		}
	}
	cross := func(s int32, _, _, _ uint8) uint8 { return uint8(s) + 3 } // by switch: the loop uses three lanes
	loop := CreditLoop(g, r.Table, LaneRules{VL: cross})
	if loop == nil {
		t.Fatal("the loop was not found")
	}
	checkCycle(t, g, loop)
	for i, x := range loop.Channels {
		if loop.Lanes[i] != uint8(x.Switch)+3 {
			t.Errorf("switch %d is reported on lane %d", x.Switch, loop.Lanes[i])
		}
	}
	if text := loop.Format(g); !strings.HasPrefix(text, "credit loop of 3 links: 0x") || !strings.Contains(text, "on lane 3") {
		t.Errorf("%s, want a loop of 3 links on lane 3", text)
	}
	// With the same tables there is no loop if packets that pass through a switch use a higher lane than those that
	// start there.
	dateline := func(s int32, in, _, _ uint8) uint8 {
		if _, _, ok := g.Peer(s, in); ok {
			return 1
		}
		return 0
	}
	if loop := CreditLoop(g, r.Table, LaneRules{VL: dateline}); loop != nil {
		t.Errorf("a loop although a lane changes at the dateline: %s", loop.Format(g))
	}
}

// Format returns the loop with the node GUIDs of the switches.
func (c *Cycle) Format(g *Graph) string {
	var b strings.Builder
	fmt.Fprintf(&b, "credit loop of %d links:", len(c.Channels))
	for i, x := range c.Channels {
		peer, far, _ := g.Peer(x.Switch, x.Port)
		fmt.Fprintf(&b, " %#016x[%d]->%#016x[%d] on lane %d", g.GUID[x.Switch], x.Port, g.GUID[peer], far, c.Lanes[i])
	}
	return b.String()
}

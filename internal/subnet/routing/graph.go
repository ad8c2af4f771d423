package routing

import (
	"fmt"
	"slices"

	"github.com/softvpi/softvpi/wire/ib"
)

// MaxPorts is how many external ports a switch can have: port 255 means "nowhere" in a forwarding table
// (IBA 14.2.5.10).
const MaxPorts = 254

// NoPort is the entry of a forwarding table for an unreachable LID (IBA 14.2.5.10).
const NoPort = 0xff

// none stands for no switch.
const none = int32(-1)

// Target is an end port as routing sees it: the LIDs behind a port of a switch.
type Target struct {
	LID    ib.LID // the first LID
	Count  int    // number of consecutive LIDs: 2 to the power of the LMC
	Switch int32
	Port   uint8 // of the switch; 0 is the switch itself
}

// Graph is what routing knows of a subnet: switches, numbered from 0, the links between them, and the LIDs
// at their ports. It consists of flat arrays, so that thousands of switches take only some megabytes.
type Graph struct {
	GUID    []uint64 // node GUID of every switch, for messages
	Targets []Target // in ascending order of LID

	first []int32 // where the ports of a switch begin in the arrays below; one more entry than switches
	peer  []int32 // the switch at the other end of a port, or none
	far   []uint8 // the port there

	// The ports with a switch at the other end, one switch after the other. Built by index.
	adjacent []int32
	adjPort  []uint8
	adjPeer  []int32
	adjBack  []uint8 // the port of adjPeer
	ofPort   []int32 // the adjacency index of a port, none if it leads to no switch; built when needed
}

// NewGraph returns a graph of switches without links. guids are their node GUIDs, ports the numbers of
// their external ports.
func NewGraph(guids []uint64, ports []uint8) *Graph {
	g := &Graph{GUID: guids, first: make([]int32, len(ports)+1)}
	for s, n := range ports {
		g.first[s+1] = g.first[s] + int32(n) + 1
	}
	g.peer = make([]int32, g.first[len(ports)])
	g.far = make([]uint8, len(g.peer))
	for i := range g.peer {
		g.peer[i] = none
	}
	return g
}

// Switches returns the number of switches.
func (g *Graph) Switches() int { return len(g.GUID) }

// ports returns the number of external ports of a switch.
func (g *Graph) ports(s int32) int { return int(g.first[s+1]-g.first[s]) - 1 }

// at returns the index of a port in the flat arrays.
func (g *Graph) at(s int32, port uint8) int32 { return g.first[s] + int32(port) }

// linkError is an invalid link or target: the port does not exist or is already in use.
type linkError struct {
	GUID uint64
	Port uint8
	Why  string
}

func (e *linkError) Error() string {
	return fmt.Sprintf("subnet: switch %#016x port %d: %s", e.GUID, e.Port, e.Why)
}

func (g *Graph) usable(s int32, port uint8) error {
	switch {
	case port == 0 || int(port) > g.ports(s):
		return &linkError{g.GUID[s], port, fmt.Sprintf("no such port, want 1 to %d", g.ports(s))}
	case g.peer[g.at(s, port)] != none:
		return &linkError{g.GUID[s], port, "linked twice"}
	}
	return nil
}

// Connect links two ports of switches. The error is a *linkError.
func (g *Graph) Connect(a int32, aPort uint8, b int32, bPort uint8) error {
	if err := g.usable(a, aPort); err != nil {
		return err
	}
	if err := g.usable(b, bPort); err != nil {
		return err
	}
	g.peer[g.at(a, aPort)], g.far[g.at(a, aPort)] = b, bPort
	g.peer[g.at(b, bPort)], g.far[g.at(b, bPort)] = a, aPort
	g.adjacent, g.ofPort = nil, nil
	return nil
}

// Peer returns the switch and port at the other end of a port; ok is false if no switch is linked.
func (g *Graph) Peer(s int32, port uint8) (peer int32, far uint8, ok bool) {
	if int(port) > g.ports(s) {
		return none, 0, false
	}
	i := g.at(s, port)
	return g.peer[i], g.far[i], g.peer[i] != none
}

// Attach adds a target. Targets must be added in ascending order of their LIDs.
func (g *Graph) Attach(t Target) error {
	if n := len(g.Targets); n > 0 && int(g.Targets[n-1].LID)+g.Targets[n-1].Count > int(t.LID) {
		return &linkError{g.GUID[t.Switch], t.Port, fmt.Sprintf("LID %d does not follow LID %d", t.LID, g.Targets[n-1].LID)}
	}
	if int(t.Port) > g.ports(t.Switch) {
		return &linkError{g.GUID[t.Switch], t.Port, fmt.Sprintf("no such port, want 0 to %d", g.ports(t.Switch))}
	}
	g.Targets = append(g.Targets, t)
	return nil
}

// Equal reports whether two graphs have the same switches, links and targets.
func (g *Graph) Equal(h *Graph) bool {
	return h != nil && slices.Equal(g.GUID, h.GUID) && slices.Equal(g.Targets, h.Targets) && slices.Equal(g.first, h.first) &&
		slices.Equal(g.peer, h.peer) && slices.Equal(g.far, h.far)
}

// topLID returns the highest LID, 0 if there is none.
func (g *Graph) topLID() int {
	if len(g.Targets) == 0 {
		return 0
	}
	t := g.Targets[len(g.Targets)-1]
	return int(t.LID) + t.Count - 1
}

// index builds the compact list of neighbours, once per graph. A link of a switch to itself leads nowhere
// and is left out.
func (g *Graph) index() {
	if g.adjacent != nil {
		return
	}
	g.adjPort, g.adjPeer, g.adjBack = g.adjPort[:0], g.adjPeer[:0], g.adjBack[:0]
	g.adjacent = make([]int32, 1, g.Switches()+1)
	for s := range int32(g.Switches()) {
		for p := 1; p <= g.ports(s); p++ {
			if i := g.at(s, uint8(p)); g.peer[i] != none && g.peer[i] != s {
				g.adjPort = append(g.adjPort, uint8(p))
				g.adjPeer = append(g.adjPeer, g.peer[i])
				g.adjBack = append(g.adjBack, g.far[i])
			}
		}
		g.adjacent = append(g.adjacent, int32(len(g.adjPort)))
	}
}

// unreached marks a distance that is too large.
const unreached = 0xff

// distances fills dist, one byte per switch, with the hops from every switch to d. order is a buffer for
// the queue; the result holds the switches by distance, d first.
func (g *Graph) distances(d int32, dist []uint8, order []int32) []int32 {
	for i := range dist {
		dist[i] = unreached
	}
	dist[d] = 0
	order = append(order[:0], d)
	for head := 0; head < len(order); head++ {
		s := order[head]
		if dist[s] == unreached-1 {
			break
		}
		for _, t := range g.adjPeer[g.adjacent[s]:g.adjacent[s+1]] {
			if dist[t] == unreached {
				dist[t] = dist[s] + 1
				order = append(order, t)
			}
		}
	}
	return order
}

// bySwitch lists the targets of every switch: those of s are list[from[s]:from[s+1]], as indexes into
// Targets.
func (g *Graph) bySwitch() (from, list []int32) {
	from = make([]int32, g.Switches()+1)
	for _, t := range g.Targets {
		from[t.Switch+1]++
	}
	for s := range g.Switches() {
		from[s+1] += from[s]
	}
	list = make([]int32, len(g.Targets))
	next := append([]int32(nil), from...)
	for i, t := range g.Targets {
		list[next[t.Switch]] = int32(i)
		next[t.Switch]++
	}
	return from, list
}

// hosts counts the targets behind external ports, per switch.
func (g *Graph) hosts() []int32 {
	n := make([]int32, g.Switches())
	for _, t := range g.Targets {
		if t.Port != 0 {
			n[t.Switch]++
		}
	}
	return n
}

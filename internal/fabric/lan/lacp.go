package lan

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/clock/due"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/lacp"
	"github.com/softvpi/softvpi/wire/eth"
)

// LACP is how a switch aggregates the links of a bundle (IEEE 802.1AX). The zero value is static: by all that are up.
type LACP struct {
	On bool
	// Passive and Fast are as of lacp.Group, and so is Choice.
	Passive, Fast bool
	Choice        lacp.Choice
}

// bonds are the switches that speak LACP.
type bonds struct {
	all []bond
	of  []int // by node: the place in all; -1: it speaks none
	due due.Times
}

// bond is a switch that does.
type bond struct {
	*lacp.System
	node  int
	ports []int                    // of the switch, by those of the system
	index [ethernet.MostPorts]int8 // of the system, by those of the switch; -1: no port of a bundle with LACP
}

// newBonds lets switches with such bundles begin. Their ports carry nothing until a partner, or its silence, is known.
func (n *Network) newBonds(now clock.Time) error {
	for i := range n.cfg.Nodes {
		n.bonds.of = append(n.bonds.of, -1)
		if x := &n.cfg.Nodes[i]; !n.Host(i) && speaksLACP(x) {
			b, err := newBond(i, x, n.fabric.Switch(i).MAC())
			if err != nil {
				return &NodeError{x.Name, err}
			}
			n.bonds.of[i] = len(n.bonds.all)
			n.bonds.all = append(n.bonds.all, b)
		}
	}
	n.bonds.due = due.New(len(n.bonds.all))
	for i := range n.bonds.all {
		b := &n.bonds.all[i]
		n.fabric.Switch(b.node).Slow = func(now clock.Time, port int, frame []byte) bool { return n.hearSlow(now, i, port, frame) }
		for _, p := range b.ports {
			n.follow(now, ethernet.End{Node: b.node, Port: p})
		}
		n.settleBond(now, i)
	}
	return nil
}

func speaksLACP(x *Node) bool {
	for _, l := range x.LACP {
		if l.On {
			return true
		}
	}
	return false
}

// newBond returns the system of a switch. Ports have their numbers at the switch, groups those of their first ports as keys.
func newBond(node int, x *Node, mac eth.MAC) (bond, error) {
	b := bond{node: node}
	for i := range b.index {
		b.index[i] = -1
	}
	c := lacp.Config{System: mac}
	for i, l := range x.LACP {
		if !l.On || i >= len(x.Bundles) || len(x.Bundles[i]) == 0 {
			continue
		}
		g := lacp.Group{Key: uint16(x.Bundles[i][0] + 1), Passive: l.Passive, Fast: l.Fast, Choice: l.Choice}
		for _, p := range x.Bundles[i] {
			b.index[p] = int8(len(b.ports))
			b.ports = append(b.ports, p)
			g.Ports = append(g.Ports, lacp.Port{Number: uint16(p + 1), MAC: mac})
		}
		c.Groups = append(c.Groups, g)
	}
	var err error
	b.System, err = lacp.New(c)
	return b, err
}

// hearSlow hands a frame of a slow protocol to the system of a switch; false: it is for nobody there.
func (n *Network) hearSlow(now clock.Time, i, port int, frame []byte) bool {
	b := &n.bonds.all[i]
	if b.index[port] < 0 {
		return false
	}
	if b.Receive(now, int(b.index[port]), frame[eth.EthernetLen:]) != nil { // it has counted it
		return true
	}
	n.settleBond(now, i)
	return true
}

// follow tells the system of a switch that the link of a port has come or gone, or has another rate.
func (n *Network) follow(now clock.Time, at ethernet.End) {
	if at.Node < 0 || len(n.bonds.of) == 0 || n.bonds.of[at.Node] < 0 {
		return
	}
	i := n.bonds.of[at.Node]
	b := &n.bonds.all[i]
	if k := b.index[at.Port]; k >= 0 {
		p := n.fabric.Port(at)
		b.SetUp(now, int(k), p.Up(), p.Config().Rate)
		n.settleBond(now, i)
	}
}

// settleBond sends what a system has to say, and lets its ports carry what they are to.
func (n *Network) settleBond(now clock.Time, i int) {
	b := &n.bonds.all[i]
	for k, f := b.Transmit(now); f != nil; k, f = b.Transmit(now) {
		if r := n.fabric.Store.Put(f, 0); r != 0 {
			n.fabric.Port(ethernet.End{Node: b.node, Port: b.ports[k]}).Express(now, r)
			n.fabric.Wake(b.node)
		}
	}
	for k, p := range b.ports {
		n.fabric.Port(ethernet.End{Node: b.node, Port: p}).SetMember(b.Carries(k))
	}
	n.bonds.due.Set(i, b.Deadline())
}

// aggregate lets systems have their turn that is due.
func (n *Network) aggregate(now clock.Time) {
	for b := &n.bonds; b.next() <= now; {
		i := b.due.Next()
		b.all[i].Advance(now)
		n.settleBond(now, i)
	}
}

// next returns when a system wants its turn.
func (b *bonds) next() clock.Time {
	if len(b.all) == 0 {
		return clock.Never
	}
	return b.due.First()
}

// aggregationText says how a port of a bundle stands; empty: LACP is not spoken there.
func (n *Network) aggregationText(at ethernet.End) string {
	if len(n.bonds.of) == 0 || n.bonds.of[at.Node] < 0 {
		return ""
	}
	b := &n.bonds.all[n.bonds.of[at.Node]]
	if at.Port >= len(b.index) || b.index[at.Port] < 0 {
		return ""
	}
	s := b.Status(int(b.index[at.Port]))
	text := s.String()
	if s.Up && s.Selected == "standby" {
		text = "standby, " + text
	}
	return text
}

// listLACP lists how the ports of bundles of a switch stand, or of all.
func listLACP(n *Network, _ clock.Time, args []string) (string, error) {
	node := n.Find(args[0])
	switch {
	case args[0] != "all" && (node < 0 || n.Host(node)):
		return "", refuse("node %q; allowed: a switch of the Ethernet, or all", args[0])
	case node >= 0 && n.bonds.of[node] < 0:
		return "", refuse("switch %q does not speak LACP; allowed: one with a bundle and \"lacp\": \"active\" or \"passive\" in the file", args[0])
	}
	var text strings.Builder
	for i := range n.bonds.all {
		b := &n.bonds.all[i]
		if node >= 0 && b.node != node {
			continue
		}
		for k, p := range b.ports {
			at := ethernet.End{Node: b.node, Port: p}
			s := b.Status(k)
			fmt.Fprintf(&text, "%s to %s: %s\n", n.endName(at), n.endName(n.fabric.Peer(at)), n.aggregationText(at))
			fmt.Fprintf(&text, "  says %v key %d port %d (%v); %d sent, %d heard, %d markers, %d wrong, %d timeouts\n", s.Actor.System, s.Actor.Key,
				s.Actor.Port, s.Actor.State, s.Sent, s.Heard, s.Markers, s.Errors, s.Timeouts)
		}
	}
	return text.String(), nil
}

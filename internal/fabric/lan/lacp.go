package lan

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/aggregation"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
)

// LACP is how a switch aggregates the links of a bundle.
type LACP = aggregation.LACP

// newBonds lets switches with such bundles begin. Their ports carry nothing until a partner, or its silence, is known.
func (n *Network) newBonds(now clock.Time) error {
	n.bonds = aggregation.New(&n.fabric)
	for i := range n.cfg.Nodes {
		x := &n.cfg.Nodes[i]
		if groups := groupsOf(x); !n.Host(i) && len(groups) > 0 {
			if _, err := n.bonds.Add(i, n.fabric.Switch(i).MAC(), groups); err != nil {
				return &NodeError{x.Name, err}
			}
		}
	}
	n.bonds.Begin(now)
	return nil
}

// groupsOf returns the bundles of a switch that follow LACP. They have the numbers of their first ports as keys.
func groupsOf(x *Node) (groups []aggregation.Group) {
	for i, l := range x.LACP {
		if l.On && i < len(x.Bundles) && len(x.Bundles[i]) > 0 {
			groups = append(groups, aggregation.Group{LACP: l, Key: uint16(x.Bundles[i][0] + 1), Ports: x.Bundles[i]})
		}
	}
	return groups
}

// aggregationText says how a port of a bundle stands; empty: LACP is not spoken there.
func (n *Network) aggregationText(at ethernet.End) string {
	b := n.bonds.Of(at.Node)
	if b == nil || b.Index(at.Port) < 0 {
		return ""
	}
	s := b.Status(b.Index(at.Port))
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
	case node >= 0 && n.bonds.Of(node) == nil:
		return "", refuse("switch %q does not speak LACP; allowed: one with a bundle and \"lacp\": \"active\" or \"passive\" in the file", args[0])
	}
	var text strings.Builder
	for _, b := range n.bonds.All() {
		if node >= 0 && b.Node != node {
			continue
		}
		for k, p := range b.Ports {
			at := ethernet.End{Node: b.Node, Port: p}
			s := b.Status(k)
			fmt.Fprintf(&text, "%s to %s: %s\n", n.endName(at), n.endName(n.fabric.Peer(at)), n.aggregationText(at))
			fmt.Fprintf(&text, "  says %v key %d port %d (%v); %d sent, %d heard, %d markers, %d wrong, %d timeouts\n", s.Actor.System, s.Actor.Key,
				s.Actor.Port, s.Actor.State, s.Sent, s.Heard, s.Markers, s.Errors, s.Timeouts)
		}
	}
	return text.String(), nil
}

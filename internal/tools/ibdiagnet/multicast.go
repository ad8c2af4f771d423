package ibdiagnet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// groupPorts are the ports to which a switch forwards the packets of groups.
type groupPorts map[ib.LID][]uint8

// multicastTable reads the multicast table of a switch.
func (c *check) multicastTable(n *discovery.Node) groupPorts {
	const inBlock = len(mad.MulticastForwardingTable{})
	groups := groupPorts{}
	room := int(n.Switch.MulticastFDBCap)
	if top := n.Switch.MulticastFDBTop; top >= uint16(ib.LIDFirstMulticast) {
		room = min(room, int(top-uint16(ib.LIDFirstMulticast))+1)
	}
	for position := 0; position*16 <= int(n.Info.NumPorts); position++ {
		for block := 0; block*inBlock < room; block++ {
			a, err := c.Get(ibdiag.DirectRoute(n.Path[1:]...), mad.AttrMulticastForwardingTable, uint32(position)<<28|uint32(block))
			if err != nil {
				return groups
			}
			t, err := mad.ParseMulticastForwardingTable(a.Data[:])
			if err != nil {
				return groups
			}
			for i, mask := range t {
				for bit := range 16 {
					if mask>>bit&1 != 0 {
						lid := ib.LIDFirstMulticast + ib.LID(block*inBlock+i)
						groups[lid] = append(groups[lid], uint8(position*16+bit))
					}
				}
			}
		}
	}
	return groups
}

// text returns the table in the format of the file .mcfdbs.
func (g groupPorts) text(n *discovery.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Switch 0x%016x\nLID    : Out Port(s) \n", n.Info.NodeGUID)
	for _, lid := range slices.Sorted(maps.Keys(g)) {
		fmt.Fprintf(&b, "0x%04x :", uint16(lid))
		for _, p := range g[lid] {
			fmt.Fprintf(&b, " 0x%03x", p)
		}
		b.WriteString(" \n")
	}
	b.WriteString("\n")
	return b.String()
}

// spread is how the packets of a group travel: over how many switches, to how many adapters' ports, over
// how many links between switches, and in how many disconnected parts.
type spread struct{ switches, ports, links, parts int }

// spreadOf follows a group from switch to switch. A link counts if both of its ends forward the group's
// packets.
func spreadOf(lid ib.LID, tables map[*discovery.Node]groupPorts) (s spread) {
	part := map[*discovery.Node]*discovery.Node{}
	root := func(n *discovery.Node) *discovery.Node {
		for part[n] != n {
			n = part[n]
		}
		return n
	}
	for n, t := range tables {
		if len(t[lid]) > 0 {
			part[n] = n
			s.switches++
		}
	}
	s.parts = s.switches
	for n := range part {
		for _, num := range tables[n][lid] {
			p := n.Port(num)
			switch {
			case num == 0 || p == nil || p.Remote == nil:
			case !p.Remote.Node.IsSwitch():
				s.ports++
			case slices.Contains(tables[p.Remote.Node][lid], p.Remote.Num):
				if n.Info.NodeGUID > p.Remote.Node.Info.NodeGUID || n == p.Remote.Node && num > p.Remote.Num {
					continue // counted from the other end
				}
				s.links++
				if a, b := root(n), root(p.Remote.Node); a != b {
					part[a] = b
					s.parts--
				}
			}
		}
	}
	return s
}

// groups writes the multicast tables to a file, and with -r looks for circles and disconnected parts.
func (c *check) groups() (bad int, err error) {
	tables, all := map[*discovery.Node]groupPorts{}, map[ib.LID]bool{}
	var file strings.Builder
	for _, n := range c.f.Nodes {
		if !n.IsSwitch() {
			continue
		}
		tables[n] = c.multicastTable(n)
		for lid := range tables[n] {
			all[lid] = true
		}
		file.WriteString(tables[n].text(n))
	}
	if err := c.write("mcfdbs", file.String()); err != nil || !c.routes {
		return 0, err
	}
	c.printf("-I- Scanning all multicast groups for loops and connectivity...\n")
	for _, lid := range slices.Sorted(maps.Keys(all)) {
		s := spreadOf(lid, tables)
		c.printf("-I- Multicast Group:0x%04X has:%d switches and:%d CA ports\n", uint16(lid), s.switches, s.ports)
		if s.links > s.switches-s.parts {
			c.printf("-E- Multicast Group:0x%04X has a loop: %d links between %d switches\n", uint16(lid), s.links, s.switches)
			bad++
		}
		if s.parts > 1 {
			c.printf("-E- Multicast Group:0x%04X is in %d parts that do not reach each other\n", uint16(lid), s.parts)
			bad++
		}
	}
	return bad, nil
}

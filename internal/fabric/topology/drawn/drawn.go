// Package drawn draws topologies for property tests.
package drawn

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
	"pgregory.net/rapid"
)

// Topology is any topology that a netlist can say.
func Topology(t *rapid.T) *topology.Topology {
	top := &topology.Topology{}
	guid := rapid.Uint64Range(1, 1<<40).Draw(t, "first GUID")
	for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
		kind := rapid.SampledFrom([]mad.NodeType{mad.NodeCA, mad.NodeSwitch, mad.NodeRouter}).Draw(t, "type")
		ports := rapid.IntRange(1, 8).Draw(t, "ports")
		id := fmt.Sprintf("%s %d", rapid.StringMatching(`[a-zA-Z0-9 _.:-]{0,10}`).Draw(t, "id"), i)
		n := topology.NewNode(kind, id, rapid.StringMatching(`[a-zA-Z0-9#"' ]{0,62}x`).Draw(t, "description"), ports, guid)
		guid += topology.GUIDs(kind, ports) + rapid.Uint64Range(0, 9).Draw(t, "gap")
		n.VendorID, n.DeviceID = rapid.Uint32Range(0, 1<<24-1).Draw(t, "vendor"), rapid.Uint16().Draw(t, "device")
		n.SystemImageGUID = rapid.Uint64Range(1, 1<<63).Draw(t, "system image")
		n.EnhancedPort0 = kind == mad.NodeSwitch && rapid.Bool().Draw(t, "enhanced")
		if kind == mad.NodeSwitch {
			n.Ports[0].LID, n.Ports[0].LMC = ib.LID(rapid.Uint16Range(0, 0xbfff).Draw(t, "lid")), rapid.Uint8Range(0, 7).Draw(t, "lmc")
		}
		top.Nodes = append(top.Nodes, n)
	}
	for range rapid.IntRange(0, 10).Draw(t, "links") {
		a, pa := drawPort(t, top)
		b, pb := drawPort(t, top)
		near, far := &top.Nodes[a].Ports[pa], &top.Nodes[b].Ports[pb]
		if near.Linked() || far.Linked() || near == far {
			continue
		}
		top.Link(a, pa, b, pb, mad.WidthOf(rapid.SampledFrom([]int{1, 2, 4, 8, 12}).Draw(t, "width")),
			mad.Speed(rapid.Uint8Range(uint8(mad.SpeedSDR), uint8(mad.SpeedXDR)).Draw(t, "speed")))
		for _, p := range []*topology.Port{near, far} {
			if p.GUID != top.Nodes[p.Peer].GUID && top.Nodes[near.Peer].Type != mad.NodeSwitch &&
				top.Nodes[far.Peer].Type != mad.NodeSwitch {
				p.LID, p.LMC = ib.LID(rapid.Uint16Range(0, 0xbfff).Draw(t, "lid")), rapid.Uint8Range(0, 7).Draw(t, "lmc")
			}
		}
	}
	return top
}

func drawPort(t *rapid.T, top *topology.Topology) (node, port int) {
	node = rapid.IntRange(0, len(top.Nodes)-1).Draw(t, "node")
	return node, rapid.IntRange(1, top.Nodes[node].NumPorts()).Draw(t, "port")
}

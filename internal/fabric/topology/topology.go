// Package topology describes the structure of an InfiniBand fabric: its nodes, their ports and the links
// between them. A topology is read from the text that ibnetdiscover prints and ibsim reads, written in the
// same format, or generated: stars, fat trees, tori, dragonflies. Package fabric runs one.
package topology

import (
	"fmt"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Limits of a topology.
const (
	maxNodes = 1 << 17
	maxPorts = 1 << 20 // of all nodes together
	// MaxNodePorts is how many ports a node may have: 255 means no port (IBA 14.2.5.10).
	MaxNodePorts = 254
)

// Topology is the nodes of a fabric and how they are connected. Nodes refer to each other by their index
// in Nodes. Programs that name no node attach to the first one.
type Topology struct {
	Nodes []Node
}

// Node is a channel adapter, switch or router.
type Node struct {
	ID              string // unique name in a netlist
	Description     string // NodeDescription
	Type            mad.NodeType
	GUID            uint64
	SystemImageGUID uint64
	VendorID        uint32 // 24 bits
	DeviceID        uint16
	EnhancedPort0   bool // of a switch: port 0 works like a channel adapter's port
	// Ports by number. Port 0 is the switch's own; other nodes do not use it.
	Ports []Port
}

// NumPorts returns the number of ports that can have links.
func (n *Node) NumPorts() int { return len(n.Ports) - 1 }

// Port is a port of a node, with its link to another.
type Port struct {
	GUID     uint64
	LID      ib.LID // that the port has initially, or 0
	LMC      uint8
	PeerPort uint8
	Width    mad.Width // of the link, exactly one width
	Speed    mad.Speed // of the link
	Peer     int32     // index in Nodes, or NoPeer
}

// NoPeer is the Peer of a port without a link.
const NoPeer = -1

// Linked reports whether the port has a link.
func (p *Port) Linked() bool { return p.Peer != NoPeer }

// Default width and speed of links, used if a netlist gives none; those of ibsim.
const (
	DefaultWidth = mad.Width4x
	DefaultSpeed = mad.SpeedSDR
)

func (p *Port) setDefaults() {
	if p.Linked() && p.Width == 0 {
		p.Width = DefaultWidth
	}
	if p.Linked() && p.Speed == mad.SpeedNone {
		p.Speed = DefaultSpeed
	}
}

// Default GUIDs of the first node of each kind; those of ibsim, which has none for routers.
const (
	firstCAGUID     = 0x100000
	firstSwitchGUID = 0x200000
	firstRouterGUID = 0x300000
)

// NewNode returns a node without links. Its ports have the GUIDs that follow the node's; those of a switch
// have the node's own.
func NewNode(t mad.NodeType, id, description string, ports int, guid uint64) Node {
	n := Node{ID: id, Description: description, Type: t, GUID: guid, SystemImageGUID: guid, Ports: make([]Port, ports+1)}
	for i := range n.Ports {
		p := &n.Ports[i]
		p.Peer = NoPeer
		p.GUID = guid
		if t != mad.NodeSwitch && i > 0 {
			p.GUID += uint64(i)
		}
	}
	return n
}

// GUIDs returns how many GUIDs a node uses.
func GUIDs(t mad.NodeType, ports int) uint64 {
	if t == mad.NodeSwitch {
		return 1
	}
	return uint64(ports) + 1
}

// Link connects two ports, which must be free.
func (t *Topology) Link(a, portA, b, portB int, w mad.Width, s mad.Speed) {
	pa, pb := &t.Nodes[a].Ports[portA], &t.Nodes[b].Ports[portB]
	if pa.Linked() || pb.Linked() || a == b && portA == portB {
		panic(fmt.Sprintf("topology: link of %s[%d] and %s[%d] is not the only one", t.Nodes[a].ID, portA, t.Nodes[b].ID, portB))
	}
	pa.Peer, pa.PeerPort, pa.Width, pa.Speed = int32(b), uint8(portB), w, s
	pb.Peer, pb.PeerPort, pb.Width, pb.Speed = int32(a), uint8(portA), w, s
}

// Counts returns the numbers of channel adapters, switches, routers and links.
func (t *Topology) Counts() (adapters, switches, routers, links int) {
	ends := 0
	for i := range t.Nodes {
		switch n := &t.Nodes[i]; n.Type {
		case mad.NodeSwitch:
			switches++
		case mad.NodeRouter:
			routers++
		default:
			adapters++
		}
		for p := range t.Nodes[i].Ports {
			if t.Nodes[i].Ports[p].Linked() {
				ends++
			}
		}
	}
	return adapters, switches, routers, ends / 2
}

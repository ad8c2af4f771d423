package topology

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Port is a port of a node, as it was found.
type Port struct {
	Node int32
	Peer int32 // the port at the other end, as index of Subnet.Ports; None where nothing is known there
	GUID uint64
	Info mad.PortInfo

	// PKeys is the table of an end port, or what a switch's port enforces; nil where it has not been read or set.
	PKeys []ib.PKey

	From  int32 // the port by which the shortest way from the manager comes here, of end ports and ports 0
	Num   uint8
	Hops  uint8
	Known bool // Info has been read
	Reach bool // an end port with a way from the manager: it can be asked. Of two with one GUID the first alone
}

// Node is a channel adapter, a switch or a router, as it was found.
type Node struct {
	Info   mad.NodeInfo
	Desc   mad.NodeDescription
	First  int32           // index of its port 0 in Subnet.Ports; adapters have one there too, which is not used
	Switch int32           // its number among the switches, None for others
	SwInfo *mad.SwitchInfo // of a switch
}

// Subnet is what is plugged together.
type Subnet struct {
	Nodes    []Node
	Ports    []Port
	Switches []int32 // nodes that are switches, in the order in which they were found
	Self     int32   // the port of the manager

	byNode map[uint64]int32 // by node GUID
	byPort map[uint64]int32 // end ports by port GUID
	byLID  []int32          // end ports by LID; None where there is none
}

// New is a subnet of which nothing is known.
func New() *Subnet {
	return &Subnet{Self: None, byNode: map[uint64]int32{}, byPort: map[uint64]int32{}}
}

// Add takes a node in, with all its ports, and returns its index.
func (n *Subnet) Add(info mad.NodeInfo) int32 {
	i := int32(len(n.Nodes))
	node := Node{Info: info, First: int32(len(n.Ports)), Switch: None}
	if info.NodeType == mad.NodeSwitch {
		node.Switch = int32(len(n.Switches))
		n.Switches = append(n.Switches, i)
	}
	n.Nodes = append(n.Nodes, node)
	for p := range int(info.NumPorts) + 1 {
		n.Ports = append(n.Ports, Port{Node: i, Peer: None, From: None, Num: uint8(p)})
	}
	n.byNode[info.NodeGUID] = i
	return i
}

// IsSwitch says whether the node of a port is a switch.
func (n *Subnet) IsSwitch(p int32) bool { return n.Nodes[n.Ports[p].Node].Switch != None }

// Entry is the port that stands for the way to a port: of a switch its port 0.
func (n *Subnet) Entry(p int32) int32 {
	if node := &n.Nodes[n.Ports[p].Node]; node.Switch != None {
		return node.First
	}
	return p
}

// EndPort says whether a port has a LID: one of an adapter or router, or port 0 of a switch.
func (n *Subnet) EndPort(p int32) bool {
	return n.Ports[p].Num == 0 == (n.Nodes[n.Ports[p].Node].Switch != None)
}

// Route adds to path the ports by which a directed route from the manager gets to a port, and with beyond to
// what is behind it.
func (n *Subnet) Route(p int32, beyond bool, path []uint8) []uint8 {
	if beyond {
		path = append(path, n.Ports[p].Num)
	}
	for u := n.Ports[n.Entry(p)].From; u != None; u = n.Ports[n.Entry(u)].From {
		path = append(path, n.Ports[u].Num)
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}

// Name tells a person which port that is.
func (n *Subnet) Name(p int32) string {
	if p == None {
		return "no port"
	}
	node := &n.Nodes[n.Ports[p].Node]
	text := fmt.Sprintf("%s %#016x port %d", strings.ToLower(node.Info.NodeType.String()), node.Info.NodeGUID, n.Ports[p].Num)
	if d := node.Desc.String(); d != "" {
		text += fmt.Sprintf(" (%q)", d)
	}
	return text
}

// Linked says whether a port's link is up: it has trained.
func Linked(i *mad.PortInfo) bool {
	return i.PortState >= mad.PortInit && i.PortState <= mad.PortActive
}

// None is the index of no node, port or switch.
const None = int32(-1)

package topology

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Port is a discovered port of a node.
type Port struct {
	Node int32
	Peer int32 // the port at the other end, as index into Subnet.Ports; None if unknown
	GUID uint64
	Info mad.PortInfo

	// PKeys is the table of an end port, or what a switch's port enforces; nil if it has not been read or
	// set.
	PKeys []ib.PKey

	From  int32 // for end ports and ports 0: the port by which the shortest path from the manager arrives
	Num   uint8
	Hops  uint8
	Known bool // Info has been read
	Reach bool // an end port that the manager can reach. Of two with one GUID only the first
	VPort
}

// Node is a discovered channel adapter, switch or router.
type Node struct {
	Info   mad.NodeInfo
	Desc   mad.NodeDescription
	First  int32           // index of its port 0 in Subnet.Ports; adapters have an unused one
	Switch int32           // its number among the switches, None for others
	SwInfo *mad.SwitchInfo // of a switch
}

// Subnet is the structure of a subnet.
type Subnet struct {
	Nodes    []Node
	Ports    []Port
	Switches []int32 // nodes that are switches, in order of discovery
	Self     int32   // the port of the manager

	byNode map[uint64]int32 // by node GUID
	byPort map[uint64]int32 // end ports by port GUID
	byLID  []int32          // end ports by LID, or None

	virtual map[int32][]int32 // virtual ports, by the end port that they are at
}

// New returns an empty subnet.
func New() *Subnet {
	return &Subnet{Self: None, byNode: map[uint64]int32{}, byPort: map[uint64]int32{}}
}

// Add adds a node with all its ports, and returns its index.
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

// IsSwitch reports whether the node of a port is a switch.
func (n *Subnet) IsSwitch(p int32) bool { return n.Nodes[n.Ports[p].Node].Switch != None }

// Entry returns the port that the path to a port leads to: port 0 of its switch, or itself.
func (n *Subnet) Entry(p int32) int32 {
	if node := &n.Nodes[n.Ports[p].Node]; node.Switch != None {
		return node.First
	}
	return p
}

// EndPort reports whether a port has a LID: one of an adapter or router, or port 0 of a switch.
func (n *Subnet) EndPort(p int32) bool {
	return n.Ports[p].Num == 0 == (n.Nodes[n.Ports[p].Node].Switch != None)
}

// Route appends to path the ports of a directed route from the manager to a port, and with beyond to the
// node behind it.
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

// Name returns a description of the port for people.
func (n *Subnet) Name(p int32) string {
	if p == None {
		return "no port"
	}
	node := &n.Nodes[n.Ports[p].Node]
	text := fmt.Sprintf("%s %#016x port %d", strings.ToLower(node.Info.NodeType.String()), node.Info.NodeGUID, n.Ports[p].Num)
	if d := node.Desc.String(); d != "" {
		text += fmt.Sprintf(" (%q)", d)
	}
	if v := n.Ports[p].Index; v != 0 {
		text += fmt.Sprintf(" virtual port %d", v)
	}
	return text
}

// Linked reports whether a port's link is up, that is, trained.
func Linked(i *mad.PortInfo) bool {
	return i.PortState >= mad.PortInit && i.PortState <= mad.PortActive
}

// None is the index of no node, port or switch.
const None = int32(-1)

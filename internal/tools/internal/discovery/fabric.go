// Package discovery discovers the topology of an InfiniBand fabric: it walks it by directed routes and
// builds a graph of nodes, ports and links. Nodes are found in the same order as by libibnetdisc, so that
// tools can print them in the order that scripts expect.
package discovery

import (
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Fabric is the discovered topology.
type Fabric struct {
	From     *Node // where the walk began
	FromPort uint8
	Nodes    []*Node // in order of discovery
	MaxHops  int     // of the longest route
	Asked    int     // number of requests

	byGUID map[uint64]*Node
}

// Node is an adapter, switch or router.
type Node struct {
	Info        mad.NodeInfo
	Description mad.NodeDescription
	Switch      mad.SwitchInfo // if it is a switch
	Ports       []*Port        // by number; nil if unknown. Only a switch has port 0
	Path        []uint8        // directed route by which it was found
	LID         ib.LID         // for a switch that of port 0
	LMC         uint8
}

// Port is a port of a node.
type Port struct {
	Node     *Node
	Num      uint8
	GUID     uint64
	LID      ib.LID // for a switch port that of port 0
	LMC      uint8
	Info     mad.PortInfo
	Extended mad.ExtendedPortInfo // only some Mellanox devices have it
	Known    bool                 // the port answered; otherwise it is only known to be at the end of a link
	Remote   *Port                // at the other end of the link
}

// IsSwitch reports whether the node is a switch.
func (n *Node) IsSwitch() bool { return n.Info.NodeType == mad.NodeSwitch }

// Port returns the port with that number; nil: nothing is known about it.
func (n *Node) Port(num uint8) *Port {
	if int(num) >= len(n.Ports) {
		return nil
	}
	return n.Ports[num]
}

// BaseLID returns the LID by which the port is reached.
func (p *Port) BaseLID() ib.LID {
	if p.Node.IsSwitch() {
		return p.Node.LID
	}
	return p.LID
}

// Capabilities returns the PortInfo whose capabilities apply to the port; false: it is not known.
func (p *Port) Capabilities() (*mad.PortInfo, bool) {
	if !p.Node.IsSwitch() {
		return &p.Info, true
	}
	if zero := p.Node.Port(0); zero != nil && zero.Known {
		return &zero.Info, true
	}
	return nil, false
}

// ExtendedSpeed returns the bit of the link's extended speed, 0x20 for XDR; 0: it has none, or the port
// does not support it.
func (p *Port) ExtendedSpeed() uint8 {
	return p.extended(func(i *mad.PortInfo) (uint8, uint8) { return i.LinkSpeedExtActive, i.LinkSpeedExt2Active })
}

// SupportedExtendedSpeeds returns the bits of the extended speeds that the port supports.
func (p *Port) SupportedExtendedSpeeds() uint8 {
	return p.extended(func(i *mad.PortInfo) (uint8, uint8) { return i.LinkSpeedExtSupported, i.LinkSpeedExt2Supported })
}

// xdrShift is how far the bits of the second field are shifted to follow those of the first.
const xdrShift = 5

// extended combines the two fields of extended speeds, as far as the port has them.
func (p *Port) extended(fields func(*mad.PortInfo) (uint8, uint8)) uint8 {
	c, ok := p.Capabilities()
	if !ok || c.CapabilityMask&mad.CapIsExtendedSpeedsSupported == 0 {
		return 0
	}
	first, second := fields(&p.Info)
	if c.CapabilityMask&mad.CapIsCapabilityMask2Supported == 0 || c.CapabilityMask2&mad.Cap2IsExtendedSpeeds2Supported == 0 {
		second = 0
	}
	return first | second<<xdrShift
}

// NodeByGUID returns the node with that GUID, or nil.
func (f *Fabric) NodeByGUID(guid uint64) *Node { return f.byGUID[guid] }

// PortByGUID returns a port with that GUID, or nil. All ports of a switch share one; any of them may be
// returned.
func (f *Fabric) PortByGUID(guid uint64) *Port {
	for _, n := range f.Nodes {
		for _, p := range n.Ports {
			if p != nil && p.GUID == guid {
				return p
			}
		}
	}
	return nil
}

// Backwards returns the nodes of the given types, or all without types, with the one found last first, as
// libibnetdisc lists them.
func (f *Fabric) Backwards(types ...mad.NodeType) []*Node {
	var list []*Node
	for i := len(f.Nodes) - 1; i >= 0; i-- {
		n := f.Nodes[i]
		if len(types) == 0 {
			list = append(list, n)
		}
		for _, t := range types {
			if n.Info.NodeType == t {
				list = append(list, n)
			}
		}
	}
	return list
}

// add adds a new node to the fabric.
func (f *Fabric) add(n *Node) {
	if f.byGUID == nil {
		f.byGUID = map[uint64]*Node{}
	}
	n.Ports = make([]*Port, int(n.Info.NumPorts)+1)
	f.Nodes = append(f.Nodes, n)
	f.byGUID[n.Info.NodeGUID] = n
}

// Renumber changes a node's GUID.
func (f *Fabric) Renumber(n *Node, guid uint64) {
	delete(f.byGUID, n.Info.NodeGUID)
	n.Info.NodeGUID = guid
	f.byGUID[guid] = n
}

// port returns the port with that number and creates it if necessary; nil: the node has no such port.
func (n *Node) port(num uint8) *Port {
	if int(num) >= len(n.Ports) {
		return nil
	}
	if n.Ports[num] == nil {
		n.Ports[num] = &Port{Node: n, Num: num, GUID: n.Info.PortGUID}
	}
	return n.Ports[num]
}

// link connects two ports, and disconnects those that they were connected to.
func link(a, b *Port) {
	for _, p := range []*Port{a, b} {
		if p.Remote != nil {
			p.Remote.Remote = nil
		}
	}
	a.Remote, b.Remote = b, a
}

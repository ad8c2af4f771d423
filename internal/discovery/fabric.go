// Package discovery finds out what an InfiniBand fabric consists of: it walks it by directed routes and makes a graph of
// nodes, ports and links. The order in which nodes are found is that of libibnetdisc, so that tools can print them in
// the order that scripts know.
package discovery

import (
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Fabric is what was found.
type Fabric struct {
	From     *Node // where the walk began
	FromPort uint8
	Nodes    []*Node // in the order in which they were found
	MaxHops  int     // of the longest route
	Asked    int     // requests

	byGUID map[uint64]*Node
}

// Node is an adapter, switch or router.
type Node struct {
	Info        mad.NodeInfo
	Description mad.NodeDescription
	Switch      mad.SwitchInfo // of a switch
	Ports       []*Port        // by number; nil where nothing is known. Only a switch has port 0
	Path        []uint8        // directed route by which it was found
	LID         ib.LID         // of a switch: of port 0
	LMC         uint8
}

// Port is a port of a node.
type Port struct {
	Node     *Node
	Num      uint8
	GUID     uint64
	LID      ib.LID // of a switch's port that of port 0
	LMC      uint8
	Info     mad.PortInfo
	Extended mad.ExtendedPortInfo // of some of Mellanox's devices
	Known    bool                 // the port answered; else it is only known to be at the end of a link
	Remote   *Port                // at the other end of the link
}

// IsSwitch tells whether the node is one.
func (n *Node) IsSwitch() bool { return n.Info.NodeType == mad.NodeSwitch }

// Port is the port with the number; nil: nothing is known of it.
func (n *Node) Port(num uint8) *Port {
	if int(num) >= len(n.Ports) {
		return nil
	}
	return n.Ports[num]
}

// BaseLID is the LID by which the port is reached.
func (p *Port) BaseLID() ib.LID {
	if p.Node.IsSwitch() {
		return p.Node.LID
	}
	return p.LID
}

// Capabilities is the PortInfo with the capabilities that hold for the port; false: it is not known.
func (p *Port) Capabilities() (*mad.PortInfo, bool) {
	if !p.Node.IsSwitch() {
		return &p.Info, true
	}
	if zero := p.Node.Port(0); zero != nil && zero.Known {
		return &zero.Info, true
	}
	return nil, false
}

// ExtendedSpeed is the bit of the extended speed that the link has, 0x20 for XDR; 0: it has none, or the port cannot tell.
func (p *Port) ExtendedSpeed() uint8 {
	return p.extended(func(i *mad.PortInfo) (uint8, uint8) { return i.LinkSpeedExtActive, i.LinkSpeedExt2Active })
}

// SupportedExtendedSpeeds are the bits of the extended speeds that the port could have.
func (p *Port) SupportedExtendedSpeeds() uint8 {
	return p.extended(func(i *mad.PortInfo) (uint8, uint8) { return i.LinkSpeedExtSupported, i.LinkSpeedExt2Supported })
}

// xdrShift is where the speeds of the second field stand behind those of the first.
const xdrShift = 5

// extended joins the two fields of extended speeds, as far as the port has them.
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

// NodeByGUID is the node with the GUID; nil: none.
func (f *Fabric) NodeByGUID(guid uint64) *Node { return f.byGUID[guid] }

// PortByGUID is a port with the GUID; nil: none. Of a switch, whose ports have one GUID, it is any.
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

// Backwards are the nodes with the one found last first, as libibnetdisc lists them. Without types they are all.
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

// add puts a new node into the fabric.
func (f *Fabric) add(n *Node) {
	if f.byGUID == nil {
		f.byGUID = map[uint64]*Node{}
	}
	n.Ports = make([]*Port, int(n.Info.NumPorts)+1)
	f.Nodes = append(f.Nodes, n)
	f.byGUID[n.Info.NodeGUID] = n
}

// Renumber gives a node another GUID.
func (f *Fabric) Renumber(n *Node, guid uint64) {
	delete(f.byGUID, n.Info.NodeGUID)
	n.Info.NodeGUID = guid
	f.byGUID[guid] = n
}

// port is the port with the number, made where it is not known yet; nil: the node has none of that number.
func (n *Node) port(num uint8) *Port {
	if int(num) >= len(n.Ports) {
		return nil
	}
	if n.Ports[num] == nil {
		n.Ports[num] = &Port{Node: n, Num: num, GUID: n.Info.PortGUID}
	}
	return n.Ports[num]
}

// link joins two ports. What they were joined to before is free then.
func link(a, b *Port) {
	for _, p := range []*Port{a, b} {
		if p.Remote != nil {
			p.Remote.Remote = nil
		}
	}
	a.Remote, b.Remote = b, a
}

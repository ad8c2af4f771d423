package fabric

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Place identifies a port of the fabric: a node by its index in Topology.Nodes, and the port's number.
type Place struct {
	Node int
	Port uint8
}

// Fabric is a running topology. It does no I/O, starts no goroutines and reads no clock; it must not be
// called concurrently.
type Fabric struct {
	nodes    []node
	ports    []port // of all nodes, each node's beginning with port 0
	byName   map[string]int32
	samplers map[int32]*sampler // by node, for those ever told to sample
	loss     lossy
	traps    trapQueue
	data     dataPlane
}

// node is a running node. What only switches have is in sw.
type node struct {
	guid, image uint64
	sw          *switchState
	description mad.NodeDescription
	vendor      uint32
	first       int32 // index of its port 0 in Fabric.ports
	device      uint16
	kind        mad.NodeType
	count       uint8 // number of ports without port 0
}

// switchState is a switch's forwarding state.
type switchState struct {
	info    mad.SwitchInfo
	forward [linearCap / forwardChunk]*[forwardChunk]uint8 // ports by LID; nil: none of the chunk has been set
	// masks by multicast LID from ib.LIDFirstMulticast on, for each group of 16 ports
	cast [][]uint16
}

// forwardChunk is how many LIDs of a forwarding table are allocated at once: few switches need all 49,152.
const forwardChunk = 1024

// out returns the port for a LID, or mad.NoPort.
func (s *switchState) out(lid ib.LID) uint8 {
	if int(lid)/forwardChunk < len(s.forward) {
		if c := s.forward[lid/forwardChunk]; c != nil {
			return c[lid%forwardChunk]
		}
	}
	return mad.NoPort
}

// block returns the chunk of the table that begins with LID at, and allocates it if necessary.
func (s *switchState) block(at int) []uint8 {
	c := &s.forward[at/forwardChunk]
	if *c == nil {
		*c = new([forwardChunk]uint8)
		for i := range *c {
			(*c)[i] = mad.NoPort
		}
	}
	return (*c)[at%forwardChunk:][:linearBlock]
}

// port is a running port. There are tens of thousands, so rarely needed parts are behind pointers.
type port struct {
	info     mad.PortInfo
	guid     uint64
	tables   *portTables // nil: in their initial state
	virtual  *virtual    // nil: it has no virtual ports
	counters *counters   // nil: all zero
	lease    *mkeyLease  // nil: none is running
	lanes    *portLanes  // nil: no data has arrived yet
	traffic  traffic
	flow     *flow // nil: it has carried only subnet management
	node     int32
	peer     int32 // index in Fabric.ports, or noPort
	number   uint8
	cut      bool // the cable is unplugged
	dark     bool // the machine around it is switched off
	led      bool // LEDInfo
	ext      mad.ExtendedPortInfo
}

const noPort = -1

// Properties of the ports. They are up to the device (IBA 14.2.5.6); these are typical.
const (
	linearCap      = 0xc000 // all unicast LIDs
	multicastCap   = 1024
	adapterPKeys   = 64
	switchPKeys    = 8 // of port 0
	enforcedPKeys  = 64
	adapterGUIDs   = 80 // link.GUIDRows
	arbitrationCap = 8
	vlCap          = 4 // VL0-7
	revision       = 0xa1
)

// New creates a running fabric from a topology, which it does not keep. All links come up. random provides
// numbers for random faults.
func New(t *topology.Topology, random func() uint64) *Fabric {
	f := &Fabric{byName: make(map[string]int32, len(t.Nodes)), loss: lossy{random: random}}
	total := 0
	for i := range t.Nodes {
		total += len(t.Nodes[i].Ports)
	}
	f.nodes, f.ports = make([]node, len(t.Nodes)), make([]port, 0, total)
	for i := range t.Nodes {
		f.addNode(i, &t.Nodes[i])
	}
	for i := range t.Nodes {
		for j := range t.Nodes[i].Ports {
			if p := &t.Nodes[i].Ports[j]; p.Linked() {
				f.ports[int(f.nodes[i].first)+j].peer = f.nodes[p.Peer].first + int32(p.PeerPort)
			}
		}
	}
	for i := range f.ports {
		f.train(&f.ports[i])
	}
	return f
}

func (f *Fabric) addNode(i int, from *topology.Node) {
	n := &f.nodes[i]
	*n = node{guid: from.GUID, image: from.SystemImageGUID, kind: from.Type, vendor: from.VendorID, device: from.DeviceID,
		description: mad.DescribeNode(from.Description), first: int32(len(f.ports)), count: uint8(from.NumPorts())}
	f.byName[from.ID] = int32(i)
	if n.kind == mad.NodeSwitch {
		n.sw = &switchState{}
		n.sw.reset(from.EnhancedPort0)
	}
	most := fastest(from)
	for j := range from.Ports {
		q := &from.Ports[j]
		p := port{guid: q.GUID, node: int32(i), peer: noPort, number: uint8(j)}
		rate := most
		if q.Linked() {
			rate = topology.Rate{Width: q.Width, Speed: q.Speed}
		}
		p.reset(n, rate)
		if !n.external(&p) {
			p.info.LID, p.info.LMC = q.LID, q.LMC
		}
		f.ports = append(f.ports, p)
	}
}

// fastest returns what an unlinked port of the node supports: the best rate of its linked ports.
func fastest(n *topology.Node) topology.Rate {
	r := topology.Rate{Width: topology.DefaultWidth, Speed: topology.DefaultSpeed}
	for i := range n.Ports {
		if p := &n.Ports[i]; p.Linked() {
			if mad.Lanes(p.Width) > mad.Lanes(r.Width) {
				r.Width = p.Width
			}
			r.Speed = max(r.Speed, p.Speed)
		}
	}
	return r
}

// external reports whether the port is an external port of a switch.
func (n *node) external(p *port) bool { return n.kind == mad.NodeSwitch && p.number != 0 }

// own returns the port that holds the node's common state: port 0 of a switch, otherwise the port asked.
func (f *Fabric) own(n *node, p *port) *port {
	if n.kind == mad.NodeSwitch {
		return &f.ports[n.first]
	}
	return p
}

// Names returns the IDs of the nodes by index.
func (f *Fabric) Names() []string {
	names := make([]string, len(f.nodes))
	for name, i := range f.byName {
		names[i] = name
	}
	return names
}

// nodeError says that a fabric has no such node or port.
type nodeError struct {
	Name string
	Port int // -1: it is about the node
	Most int // number of the node's ports
}

// Error implements error.
func (e *nodeError) Error() string {
	if e.Port < 0 {
		return fmt.Sprintf("there is no node %q in the fabric", e.Name)
	}
	return fmt.Sprintf("node %q has no port %d; allowed: 1 to %d", e.Name, e.Port, e.Most)
}

// Find returns the node with that ID, or else with that NodeDescription. The error is a *nodeError.
func (f *Fabric) Find(name string) (node int, err error) {
	if i, ok := f.byName[name]; ok {
		return int(i), nil
	}
	for i := range f.nodes {
		if f.nodes[i].description.String() == name {
			return i, nil
		}
	}
	return 0, &nodeError{Name: name, Port: -1}
}

// Attach returns where a program at a node attaches: the first port of a channel adapter or router, port 0
// of a switch.
func (f *Fabric) Attach(node int) Place {
	if f.nodes[node].kind == mad.NodeSwitch {
		return Place{node, 0}
	}
	return Place{node, 1}
}

// EndPort returns the port of a node with that number, if it can be a destination; 0 means that of Attach.
// The error is a *nodeError.
func (f *Fabric) EndPort(node int, number uint8) (Place, error) {
	n := &f.nodes[node]
	at := Place{node, number}
	if number == 0 {
		at = f.Attach(node)
	}
	if at.Port > n.count || n.kind == mad.NodeSwitch && at.Port != 0 {
		return at, &nodeError{Name: n.description.String(), Port: int(number), Most: int(n.count)}
	}
	return at, nil
}

// port returns the port at a place, which must exist.
func (f *Fabric) port(p Place) *port { return &f.ports[int(f.nodes[p.Node].first)+int(p.Port)] }

func (f *Fabric) place(p *port) Place { return Place{int(p.node), p.number} }

// NodeInfo returns the NodeInfo of the node at a place.
func (f *Fabric) NodeInfo(at Place) mad.NodeInfo {
	return f.nodeInfo(&f.nodes[at.Node], f.port(at))
}

// PortInfo returns the PortInfo of the port.
func (f *Fabric) PortInfo(at Place) mad.PortInfo {
	i := f.port(at).info
	i.LocalPortNum = at.Port
	return i
}

// PKeys returns the first 32 P_Keys of the port.
func (f *Fabric) PKeys(at Place) mad.PKeyTable { return f.port(at).pkeys(0) }

// SetIsSM says whether a subnet manager is at the port, which the port reports to the current one by trap
// 144.
func (f *Fabric) SetIsSM(at Place, is bool) {
	p := f.port(at)
	mask := p.info.CapabilityMask &^ mad.CapIsSM
	if is {
		mask |= mad.CapIsSM
	}
	if mask != p.info.CapabilityMask {
		p.info.CapabilityMask = mask
		f.capabilityChanged(p, 0)
	}
}

// matches reports whether a packet to lid is for this port.
func (p *port) matches(lid ib.LID) bool {
	return lid == ib.LIDPermissive || p.info.LID != 0 && lid&^(1<<p.info.LMC-1) == p.info.LID&^(1<<p.info.LMC-1) || p.virtual.has(lid)
}

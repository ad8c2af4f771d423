package discovery

import (
	"fmt"

	"github.com/softvpi/softvpi/wire/mad"
)

// Options limit a walk.
type Options struct {
	From     []uint8 // directed route to where the walk begins; its first element is not a port. Empty: at the sender
	MaxHops  int     // from there; 0: no limit
	MaxNodes int     // with more the fabric is considered faulty; 0: defaultMaxNodes
	// Found, if not nil, is called for each answer that identifies a node.
	Found func(path []uint8, p *Port, isNew bool)
}

const (
	// defaultMaxNodes is more than a subnet has LIDs.
	defaultMaxNodes = 100_000
	// maxWaiting is more than the unexplored links that so many nodes have.
	maxWaiting = 1 << 20
)

// Request is a query to the node at the end of a directed route.
type Request struct {
	Path      []uint8 // its first element is not a port
	Attribute uint16
	Modifier  uint32

	last uint32 // for a series of requests, one per port beginning with Modifier: that of the last one
	node *Node  // that it is about; nil: it is a NodeInfo request
	from *Port  // for a NodeInfo: the port that leads there; nil: where the walk begins
}

// Fault is a missing or invalid answer.
type Fault struct {
	Path      []uint8
	Attribute uint16
	Modifier  uint32
	Err       error
}

// Error implements error.
func (f *Fault) Error() string {
	return fmt.Sprintf("directed route %v, attribute %#x, modifier %d: %v", f.Path, f.Attribute, f.Modifier, f.Err)
}

// Unwrap returns the reason.
func (f *Fault) Unwrap() error { return f.Err }

// Walk is a walk through a fabric. It sends nothing itself: Next returns what to ask, Answer takes the
// answers. Answers may arrive in any order but are handled in the order of the requests, so that the
// result does not depend on timing.
type Walk struct {
	options Options
	fabric  *Fabric
	hops    int // length of the longest route from the beginning
	waiting []*Request
	asked   []*asked // not handled yet
	first   int      // number of asked[0]
	faults  []*Fault
	err     error
}

// asked is a request that Next returned.
type asked struct {
	*Request
	come bool
	data [mad.SMPDataLen]byte
	err  error
}

// NewWalk starts a walk.
func NewWalk(o Options) *Walk {
	if o.MaxNodes == 0 {
		o.MaxNodes = defaultMaxNodes
	}
	if len(o.From) == 0 {
		o.From = []uint8{0}
	}
	w := &Walk{options: o, fabric: &Fabric{}}
	w.ask(&Request{Path: o.From, Attribute: mad.AttrNodeInfo})
	return w
}

func (w *Walk) ask(r *Request) {
	if len(w.waiting) >= maxWaiting && w.err == nil {
		w.err = fmt.Errorf("more than %d links lead further; a node invents others", maxWaiting)
	}
	w.waiting = append(w.waiting, r)
}

// Next returns the next request, with its number; nil: there is none until further answers arrive.
func (w *Walk) Next() (r *Request, number int) {
	if len(w.waiting) == 0 || w.err != nil {
		return nil, 0
	}
	r = w.waiting[0]
	if r.Modifier < r.last {
		one := *r
		r.Modifier++
		r = &one
	} else {
		w.waiting[0] = nil
		w.waiting = w.waiting[1:]
	}
	w.asked = append(w.asked, &asked{Request: r})
	w.fabric.Asked++
	return r, w.first + len(w.asked) - 1
}

// Answer takes the answer to the request with that number, or the reason why there is none.
func (w *Walk) Answer(number int, data *[mad.SMPDataLen]byte, err error) {
	i := number - w.first
	if i < 0 || i >= len(w.asked) || w.asked[i].come {
		return
	}
	a := w.asked[i]
	a.come, a.err = true, err
	if data != nil {
		a.data = *data
	}
	for len(w.asked) > 0 && w.asked[0].come {
		next := w.asked[0]
		w.asked[0] = nil
		w.asked, w.first = w.asked[1:], w.first+1
		w.act(next)
	}
}

// Result returns the fabric as far as it is known, what was not answered, and why the walk was abandoned,
// if it was.
func (w *Walk) Result() (*Fabric, []*Fault, error) {
	f := w.fabric
	f.MaxHops = w.hops + len(w.options.From) - 1
	if f.From == nil && w.err == nil && len(w.faults) > 0 {
		return f, w.faults, w.faults[0]
	}
	return f, w.faults, w.err
}

func (w *Walk) fault(a *asked, err error) {
	w.faults = append(w.faults, &Fault{Path: a.Path, Attribute: a.Attribute, Modifier: a.Modifier, Err: err})
}

// act handles an answer.
func (w *Walk) act(a *asked) {
	if a.err != nil {
		w.fault(a, a.err)
		if a.Attribute == mad.AttrMellanoxExtendedPortInfo { // the port is known without it, too
			w.goOn(a, a.node.port(uint8(a.Modifier)))
		}
		return
	}
	var err error
	switch a.Attribute {
	case mad.AttrNodeInfo:
		err = w.nodeInfo(a)
	case mad.AttrNodeDescription:
		a.node.Description = mad.NodeDescription(a.data)
	case mad.AttrSwitchInfo:
		a.node.Switch, err = mad.ParseSwitchInfo(a.data[:])
	case mad.AttrPortInfo:
		err = w.portInfo(a)
	case mad.AttrMellanoxExtendedPortInfo:
		p := a.node.port(uint8(a.Modifier))
		p.Extended, err = mad.ParseExtendedPortInfo(a.data[:])
		w.goOn(a, p)
	}
	if err != nil {
		w.fault(a, err)
	}
}

// nodeInfo handles the NodeInfo of the node at the end of a route.
func (w *Walk) nodeInfo(a *asked) error {
	info, err := mad.ParseNodeInfo(a.data[:])
	if err != nil {
		return err
	}
	if info.LocalPortNum > info.NumPorts {
		return fmt.Errorf("the node %#016x answers from port %d but has only %d ports", info.NodeGUID, info.LocalPortNum, info.NumPorts)
	}
	n := w.fabric.NodeByGUID(info.NodeGUID)
	isNew := n == nil
	if isNew {
		if len(w.fabric.Nodes) == w.options.MaxNodes {
			w.err = fmt.Errorf("the fabric has more than %d nodes; one of them may be inventing others", w.options.MaxNodes)
			return nil
		}
		n = &Node{Info: info, Path: a.Path}
		w.fabric.add(n)
	}
	p := n.port(info.LocalPortNum)
	if p == nil {
		return fmt.Errorf("the node %#016x has %d ports, but was reached at port %d", info.NodeGUID, len(n.Ports)-1, info.LocalPortNum)
	}
	p.GUID = info.PortGUID
	if w.options.Found != nil {
		w.options.Found(a.Path, p, isNew)
	}
	if a.from == nil {
		w.fabric.From, w.fabric.FromPort = n, info.LocalPortNum
	} else {
		link(p, a.from)
	}
	if isNew {
		w.ask(&Request{Path: a.Path, Attribute: mad.AttrNodeDescription, node: n})
		if n.IsSwitch() {
			w.ask(&Request{Path: a.Path, Attribute: mad.AttrSwitchInfo, node: n})
			w.ask(&Request{Path: a.Path, Attribute: mad.AttrPortInfo, node: n})
		}
	}
	if !n.IsSwitch() {
		w.ask(&Request{Path: a.Path, Attribute: mad.AttrPortInfo, Modifier: uint32(info.LocalPortNum), node: n})
	}
	return nil
}

// portInfo handles the state of a port. After port 0 it asks for the other ports of a switch.
func (w *Walk) portInfo(a *asked) error {
	info, err := mad.ParsePortInfo(a.data[:])
	if err != nil {
		return err
	}
	n, num := a.node, uint8(a.Modifier)
	p := n.port(num)
	p.Info, p.Known, p.LID, p.LMC = info, true, info.LID, info.LMC
	switch {
	case num == 0:
		n.LID, n.LMC = info.LID, info.LMC
	case n.IsSwitch():
		p.LID, p.LMC = n.LID, n.LMC
	}
	if mayBeFDR10(n) && info.PortPhysicalState == mad.PhysicalLinkUp && info.LinkSpeedActive == qdr && p.ExtendedSpeed() == 0 {
		w.ask(&Request{Path: a.Path, Attribute: mad.AttrMellanoxExtendedPortInfo, Modifier: a.Modifier, node: n})
		return nil
	}
	w.goOn(a, p)
	if num == 0 && n.IsSwitch() {
		if last := uint32(n.Info.NumPorts); last > 0 {
			w.ask(&Request{Path: a.Path, Attribute: mad.AttrPortInfo, Modifier: 1, last: last, node: n})
		}
	}
	return nil
}

// goOn asks which node is at the other end of a port's link.
func (w *Walk) goOn(a *asked, p *Port) {
	n := a.node
	begin := n == w.fabric.From && p.Num == w.fabric.FromPort
	through := n.IsSwitch() && p.Num != p.Info.LocalPortNum
	if p.Num == 0 || p.Remote != nil || p.Info.PortPhysicalState != mad.PhysicalLinkUp || !through && !begin {
		return // no link, a known one, or an adapter, which forwards nothing
	}
	if w.options.MaxHops > 0 && w.hops > w.options.MaxHops {
		return
	}
	path := a.Path
	if !n.IsSwitch() && len(path) > 2 {
		path = path[:len(path)-1] // the walk began at a remote adapter: back to where the route came from
		w.hops++
	} else {
		if len(path) > mad.MaxHops {
			w.fault(a, fmt.Errorf("port %d lies beyond the %d hops that a route may have", p.Num, mad.MaxHops))
			return
		}
		path = append(append(make([]uint8, 0, len(path)+1), path...), p.Num)
		w.hops = max(w.hops, len(path)-len(w.options.From))
	}
	w.ask(&Request{Path: path, Attribute: mad.AttrNodeInfo, from: p})
}

// qdr is the bit of QDR in LinkSpeedActive.
const qdr = 4

// mayBeFDR10 reports whether a device may have the vendor's ExtendedPortInfo; the numbers are those of
// infiniband-diags.
func mayBeFDR10(n *Node) bool {
	id := n.Info.DeviceID
	switch id {
	case 0xc839, 0xcb20, 0xcf08, 0xcf09, 0xd2f0, 0xa2d2:
		return true
	}
	return id >= 0xc738 && id <= 0xc73b || id >= 0x1003 && id <= 0x101b
}

package subnet

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// bench is a fabric of nodes that answer subnet management as the specification says, or lie.
type bench struct {
	t     rapid.TB
	nodes []*benchNode
	net   *sim.Network
	now   clock.Time         // of net
	sms   map[*benchNode]*SM // nodes with a subnet manager at their port 1
	ports map[*SM]*sim.Port
	log   []Event
	lose  func() bool // reports whether the next MAD is lost
	count int         // requests that nodes have answered
	byGMP func(*Packet, *benchNode)
}

type benchNode struct {
	name   string
	info   mad.NodeInfo
	ports  []benchPort
	sw     mad.SwitchInfo
	lft    []byte
	mft    map[uint32][32]uint16
	silent bool
	lie    func(*mad.SMP) // changes the node's answers
	sets   int
}

type benchPort struct {
	peer *benchNode
	far  uint8
	info mad.PortInfo
	keys map[uint32]mad.PKeyTable
	sl   map[uint32][8]byte
	arb  map[uint32]mad.VLArbitrationTable
	guid map[uint32]mad.GUIDInfo
}

func newBench(t rapid.TB) *bench {
	return &bench{t: t, net: sim.New(1), sms: map[*benchNode]*SM{}, ports: map[*SM]*sim.Port{}, lose: func() bool { return false }}
}

// node adds a node with the next GUID.
func (b *bench) node(name string, kind mad.NodeType, ports int) *benchNode {
	guid := uint64(len(b.nodes)+1) << 8
	n := &benchNode{name: name, ports: make([]benchPort, ports+1), mft: map[uint32][32]uint16{}}
	n.info = mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: kind, NumPorts: uint8(ports), SystemImageGUID: guid, NodeGUID: guid,
		PortGUID: guid, PartitionCap: 64}
	n.sw = mad.SwitchInfo{LinearFDBCap: 0xc000, MulticastFDBCap: 1024, PartitionEnforcementCap: 32, InboundEnforcementCap: true,
		OutboundEnforcementCap: true}
	n.lft = make([]byte, 0xc000)
	for i := range n.lft {
		n.lft[i] = routing.NoPort
	}
	for p := range n.ports {
		n.ports[p].info = mad.PortInfo{PortState: mad.PortDown, PortPhysicalState: mad.PhysicalPolling, MTUCap: 5, VLCap: 4,
			LinkWidthActive: 2, LinkSpeedActive: 4,
			CapabilityMask: mad.CapIsClientReregistrationSupported, LocalPortNum: uint8(p), VLArbitrationHighCap: 8, VLArbitrationLowCap: 8,
			GUIDCap: 8}
		n.ports[p].keys = map[uint32]mad.PKeyTable{0: {0xffff}}
		n.ports[p].sl = map[uint32][8]byte{}
		n.ports[p].arb, n.ports[p].guid = map[uint32]mad.VLArbitrationTable{}, map[uint32]mad.GUIDInfo{}
	}
	if kind == mad.NodeSwitch {
		n.ports[0].info.PortState, n.ports[0].info.PortPhysicalState = mad.PortActive, mad.PhysicalLinkUp
	}
	b.nodes = append(b.nodes, n)
	return n
}

func (b *bench) link(x *benchNode, p uint8, y *benchNode, q uint8) {
	x.ports[p].peer, x.ports[p].far = y, q
	y.ports[q].peer, y.ports[q].far = x, p
	b.train(x, p)
	b.train(y, q)
}

func (b *bench) train(n *benchNode, p uint8) {
	n.ports[p].info.PortState, n.ports[p].info.PortPhysicalState = mad.PortInit, mad.PhysicalLinkUp
	n.sw.PortStateChange = true
}

// unlink unplugs a cable.
func (b *bench) unlink(x *benchNode, p uint8) {
	y, q := x.ports[p].peer, x.ports[p].far
	if y == nil {
		return
	}
	for _, e := range []struct {
		n *benchNode
		p uint8
	}{{x, p}, {y, q}} {
		e.n.ports[e.p].peer = nil
		e.n.ports[e.p].info.PortState, e.n.ports[e.p].info.PortPhysicalState = mad.PortDown, mad.PhysicalPolling
		e.n.sw.PortStateChange = true
	}
}

// behind returns the far end of a port.
func (b *bench) behind(n *benchNode, p uint8) (*benchNode, uint8) {
	if int(p) >= len(n.ports) || p == 0 && n.info.NodeType != mad.NodeSwitch {
		return nil, 0
	}
	return n.ports[p].peer, n.ports[p].far
}

// start runs a subnet manager at port 1 of a node, or port 0 of a switch.
func (b *bench) start(n *benchNode, cfg Config) *SM {
	sm, err := New(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.sms[n], b.ports[sm] = sm, b.net.Add(netip.Addr{}, &manager{SM: sm, b: b, at: n})
	n.ports[b.home(n)].info.CapabilityMask |= mad.CapIsSM
	sm.Start(b.now)
	return sm
}

func (b *bench) home(n *benchNode) uint8 {
	if n.info.NodeType == mad.NodeSwitch {
		return 0
	}
	return 1
}

// run runs everything for the time d.
func (b *bench) run(d time.Duration) {
	for _, p := range b.ports {
		p.Wake()
	}
	steps, end := 0, b.now.Add(d)
	b.net.Run(end, func() bool {
		if steps++; steps > 3_000_000 {
			b.t.Fatal("the managers do not come to rest")
		}
		return false
	})
	b.net.Pass(end.Sub(b.net.Now()))
	b.now = end
	for _, n := range b.nodes {
		if sm := b.sms[n]; sm != nil {
			b.log = append(b.log, sm.Events()...)
		}
	}
}

// manager is a subnet manager at a node as an engine of the network. What it sends arrives at once, and it has a turn
// each microsecond as long as it sends.
type manager struct {
	*SM
	b    *bench
	at   *benchNode
	next clock.Time // its next turn; 0: it waits
	out  [64]Packet
}

// dead reports whether the node has no manager any more, or another one.
func (m *manager) dead() bool { return m.b.sms[m.at] != m.SM }

// Receive implements sim.Engine.
func (m *manager) Receive(clock.Time, []frame.In) {}

// Transmit implements sim.Engine.
func (m *manager) Transmit(now clock.Time, _ []frame.Out) int {
	if m.dead() || now < m.next {
		return 0
	}
	m.b.now, m.next = now, 0
	n := m.SM.Transmit(now, m.out[:])
	for i := range m.out[:n] {
		m.next = now.Add(time.Microsecond)
		if !m.b.lose() {
			m.b.deliver(m.at, &m.out[i])
		}
	}
	return 0
}

// Pending hides the manager's: it has its turn when time has gone on.
func (m *manager) Pending() bool { return false }

// Advance implements sim.Engine.
func (m *manager) Advance(now clock.Time) {
	if m.b.now = now; m.SM.Deadline() <= now {
		m.SM.Advance(now)
	}
}

// Deadline implements sim.Engine.
func (m *manager) Deadline() clock.Time {
	switch {
	case m.dead():
		return clock.Never
	case m.next != 0:
		return clock.Min(m.next, m.SM.Deadline())
	}
	return m.SM.Deadline()
}

// receive passes a MAD to a manager.
func (b *bench) receive(sm *SM, p *Packet) {
	sm.Receive(b.now, p)
	b.ports[sm].Wake()
}

// deliver carries a MAD from the node that sends it.
func (b *bench) deliver(from *benchNode, p *Packet) {
	if c := p.MAD[1]; c != mad.ClassSubnetDir && c != mad.ClassSubnetLID {
		b.deliverGMP(from, p)
		return
	}
	smp, err := mad.ParseSMP(p.MAD[:])
	if err != nil {
		b.t.Fatalf("a manager sent %v", err)
	}
	if smp.Method == mad.MethodGetResp || !smp.Directed() {
		b.backward(from, p, &smp)
		return
	}
	at, in := from, b.home(from)
	for hop := 1; hop <= int(smp.HopCount()); hop++ {
		if at.info.NodeType != mad.NodeSwitch && hop > 1 {
			return
		}
		next, far := b.behind(at, smp.InitialPath[hop])
		if next == nil || next.silent {
			return
		}
		at, in = next, far
		smp.ReturnPath[hop] = far
	}
	if smp.AttributeID == mad.AttrSMInfo {
		if sm := b.sms[at]; sm != nil {
			q := Packet{LID: ib.LIDPermissive}
			smp.Append(q.MAD[:0])
			b.receive(sm, &q)
		}
		return
	}
	b.count++
	b.answer(at, in, &smp)
	if at.lie != nil {
		at.lie(&smp)
	}
	if b.lose() {
		return
	}
	q := Packet{LID: ib.LIDPermissive}
	smp.Append(q.MAD[:0])
	if sm := b.sms[from]; sm != nil {
		b.receive(sm, &q)
	}
}

// backward carries a manager's answer to the manager that asked.
func (b *bench) backward(from *benchNode, p *Packet, smp *mad.SMP) {
	at := from
	for hop := int(smp.HopCount()); hop >= 1 && smp.Directed(); hop-- {
		next, _ := b.behind(at, smp.ReturnPath[hop])
		if next == nil {
			return
		}
		at = next
	}
	if sm := b.sms[at]; sm != nil && at != from {
		q := *p
		b.receive(sm, &q)
	}
}

// answer turns a request that came in by a port into the node's answer.
func (b *bench) answer(n *benchNode, in uint8, smp *mad.SMP) {
	set := smp.Method == mad.MethodSet
	if set {
		n.sets++
	}
	smp.Method = mad.MethodGetResp
	smp.SetStatus(mad.StatusOK, true)
	data := smp.Data
	reply := func(a interface{ Append([]byte) []byte }) {
		smp.Data = [64]byte{}
		a.Append(smp.Data[:0])
	}
	mod := smp.AttributeModifier
	isSwitch := n.info.NodeType == mad.NodeSwitch
	switch smp.AttributeID {
	case mad.AttrNodeInfo:
		i := n.info
		i.LocalPortNum = in
		if !isSwitch {
			i.PortGUID += uint64(in)
		}
		reply(&i)
	case mad.AttrNodeDescription:
		smp.Data = [64]byte(mad.DescribeNode(n.name))
	case mad.AttrSwitchInfo:
		if set {
			i, _ := mad.ParseSwitchInfo(data[:])
			n.sw.LinearFDBTop, n.sw.LifeTimeValue = i.LinearFDBTop, i.LifeTimeValue
			n.sw.PortStateChange = n.sw.PortStateChange && !i.PortStateChange
		}
		reply(&n.sw)
	case mad.AttrPortInfo:
		port := &n.ports[min(int(mod), len(n.ports)-1)]
		if set {
			b.setPort(n, port, data[:], smp)
		}
		reply(&port.info)
	case mad.AttrPKeyTable:
		port := &n.ports[in]
		if isSwitch {
			port = &n.ports[mod>>16]
		}
		if set {
			port.keys[mod&0xffff], _ = mad.ParsePKeyTable(data[:])
		}
		t := port.keys[mod&0xffff]
		reply(&t)
	case mad.AttrLinearForwardingTable:
		if set {
			copy(n.lft[int(mod)*64:], data[:])
		}
	case mad.AttrMulticastForwardingTable:
		if set {
			n.mft[mod], _ = mad.ParseMulticastForwardingTable(data[:])
		}
		t := mad.MulticastForwardingTable(n.mft[mod])
		reply(&t)
	case mad.AttrSLtoVLMappingTable:
		port := &n.ports[in]
		if isSwitch {
			port = &n.ports[mod&0xff]
		}
		port.sl[mod] = [8]byte(data[:])
	case mad.AttrVLArbitrationTable:
		port := &n.ports[in]
		if isSwitch {
			port = &n.ports[mod&0xffff]
		}
		port.arb[mod>>16], _ = mad.ParseVLArbitrationTable(data[:])
	case mad.AttrGUIDInfo:
		n.ports[in].guid[mod], _ = mad.ParseGUIDInfo(data[:])
	default:
		smp.SetStatus(mad.StatusAttributeUnsupported, true)
	}
}

func (b *bench) setPort(n *benchNode, port *benchPort, data []byte, smp *mad.SMP) {
	i, _ := mad.ParsePortInfo(data)
	old := port.info
	switch s := i.PortState; {
	case s == mad.PortStateNoChange, s == mad.PortArmed && old.PortState == mad.PortInit, s == mad.PortActive &&
		old.PortState == mad.PortArmed:
	default:
		smp.SetStatus(mad.StatusInvalidField, true)
		return
	}
	if i.PortState != mad.PortStateNoChange {
		port.info.PortState = i.PortState
	}
	i.PortState, i.PortPhysicalState, i.LinkDownDefaultState = port.info.PortState, old.PortPhysicalState, old.LinkDownDefaultState
	port.info = i
}

func (b *bench) deliverGMP(from *benchNode, p *Packet) {
	if b.byGMP != nil {
		b.byGMP(p, from)
	}
}

// texts returns the texts of the logged events of a kind.
func (b *bench) texts(kind EventKind) (list []string) {
	for _, e := range b.log {
		if e.Kind == kind {
			list = append(list, e.Text)
		}
	}
	return list
}

// smallBench is two switches joined by two links, and four hosts, the last connected to both.
func smallBench(t testing.TB) (*bench, []*benchNode) {
	b := newBench(t)
	var h []*benchNode
	for _, n := range []string{"h1", "h2", "h3"} {
		h = append(h, b.node(n, mad.NodeCA, 1))
	}
	h = append(h, b.node("h4", mad.NodeCA, 2))
	s1, s2 := b.node("s1", mad.NodeSwitch, 8), b.node("s2", mad.NodeSwitch, 8)
	b.link(h[0], 1, s1, 1)
	b.link(h[1], 1, s1, 2)
	b.link(h[2], 1, s2, 1)
	b.link(h[3], 1, s2, 2)
	b.link(h[3], 2, s1, 3)
	b.link(s1, 7, s2, 7)
	b.link(s1, 8, s2, 8)
	return b, append(h, s1, s2)
}

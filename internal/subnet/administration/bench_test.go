package administration

import (
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/internal/subnet/administration/asker"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// bench is the administration of a subnet that the test builds; the test plays the manager's part.
type bench struct {
	t      testing.TB
	net    *sim.Network
	now    clock.Time // of net
	port   *sim.Port  // of the administration
	sa     *SA
	n      *topology.Subnet
	lmc    uint8
	routes *routing.Routes
	sws    map[uint64]int32 // number of a switch in routes, by node GUID
	sent   []sentMAD
	wrong  int // requests with a wrong key
	*asker.Asker
}

type sentMAD struct {
	to Address
	m  mad.SA
}

// The bench is the manager of its administration.

func (b *bench) Master() bool { return true }

func (b *bench) Tables(node uint64) ([]byte, map[uint32]mad.MulticastForwardingTable) {
	return b.routes.Table(b.sws[node]), nil
}

func (b *bench) SMInfo(p int32) (mad.SMInfo, bool) {
	return mad.SMInfo{GUID: b.n.Ports[p].GUID, SMKey: 1, State: mad.SMMaster}, p == b.n.Self
}

func (b *bench) SLtoVL(int32) (t mad.SLtoVLMappingTable) { return t }

func (b *bench) VLArbitration(int32, uint8) (t mad.VLArbitrationTable) { return t }

func (b *bench) Send(to Address, m *mad.SA) { b.sent = append(b.sent, sentMAD{to, *m}) }

func (b *bench) Crowded() bool { return len(b.sent) > 1000 }

func (b *bench) WrongKey(ib.LID, uint64) { b.wrong++ }

// uplink carries the asker's requests to the bench.
type uplink struct{ b *bench }

func (l uplink) Send(from ib.LID, m *mad.SA) {
	l.b.sa.Receive(l.b.now, Address{LID: from, QPN: 1}, m.Append(nil))
}

func (l uplink) Run(d time.Duration) {
	b := l.b
	b.port.Wake()
	b.net.Pass(d)
	b.now = b.net.Now()
}

// answerer is the administration as an engine of the network. What it sends arrives at once.
type answerer struct{ b *bench }

// Receive implements sim.Engine: requests come by the uplink.
func (a answerer) Receive(clock.Time, []frame.In) {}

// Transmit implements sim.Engine.
func (a answerer) Transmit(now clock.Time, _ []frame.Out) int {
	b := a.b
	for b.now = now; len(b.sent) > 0; {
		x := b.sent[0]
		b.sent = b.sent[1:]
		b.Take(x.to.LID, x.m.Append(nil))
	}
	return 0
}

// Advance implements sim.Engine.
func (a answerer) Advance(now clock.Time) {
	a.b.now = now
	a.b.sa.Advance(now)
}

// Deadline implements sim.Engine.
func (a answerer) Deadline() clock.Time { return a.b.sa.Deadline() }

func (b *bench) run(d time.Duration) { uplink{b}.Run(d) }

// node adds a node with the next GUID and returns the index of its port 0.
func (b *bench) node(name string, kind mad.NodeType, ports int) int32 {
	guid := uint64(len(b.n.Nodes)+1) << 8
	i := b.n.Add(mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: kind, NumPorts: uint8(ports), SystemImageGUID: guid,
		NodeGUID: guid, PortGUID: guid, PartitionCap: 64})
	node := &b.n.Nodes[i]
	node.Desc = mad.DescribeNode(name)
	if kind == mad.NodeSwitch {
		node.SwInfo = &mad.SwitchInfo{LinearFDBCap: 0xc000, MulticastFDBCap: 1024}
	}
	for p := range ports + 1 {
		port := &b.n.Ports[node.First+int32(p)]
		port.Known = p > 0 || kind == mad.NodeSwitch
		port.Info = mad.PortInfo{PortState: mad.PortDown, MTUCap: 5, NeighborMTU: 5, LinkWidthActive: 2, LinkSpeedActive: 4,
			LocalPortNum: uint8(p), GUIDCap: 8}
		if b.n.EndPort(node.First + int32(p)) {
			port.GUID, port.PKeys, port.Info.PortState = guid+uint64(p), []ib.PKey{0xffff}, mad.PortActive
		}
	}
	return node.First
}

func (b *bench) link(x int32, p uint8, y int32, q uint8) {
	for _, e := range [][2]int32{{x + int32(p), y + int32(q)}, {y + int32(q), x + int32(p)}} {
		port := &b.n.Ports[e[0]]
		port.Peer, port.Info.PortState = e[1], mad.PortActive
	}
}

// up assigns LIDs and routes and tells the administration about all end ports but those in absent.
func (b *bench) up(absent ...int32) {
	n := b.n
	var guids []uint64
	var ports []uint8
	swOf := make([]int32, len(n.Nodes))
	b.sws = map[uint64]int32{}
	for i := range n.Nodes {
		swOf[i] = topology.None
		if node := &n.Nodes[i]; node.Switch != topology.None {
			swOf[i] = node.Switch
			b.sws[node.Info.NodeGUID] = node.Switch
			guids, ports = append(guids, node.Info.NodeGUID), append(ports, node.Info.NumPorts)
		}
	}
	g := routing.NewGraph(guids, ports)
	lid := ib.LID(4)
	for i := range n.Ports {
		p := int32(i)
		port := &n.Ports[p]
		if q := port.Peer; q > p && n.IsSwitch(p) && n.IsSwitch(q) {
			_ = g.Connect(swOf[port.Node], port.Num, swOf[n.Ports[q].Node], n.Ports[q].Num)
		}
		if !n.EndPort(p) || !n.IsSwitch(p) && port.Peer == topology.None {
			continue
		}
		port.Info.LID, port.Reach = lid, true
		target := routing.Target{LID: lid, Count: 1}
		if n.IsSwitch(p) {
			target.Switch = swOf[port.Node]
		} else {
			port.Info.LMC = b.lmc
			target.Count, target.Switch, target.Port = 1<<b.lmc, swOf[n.Ports[port.Peer].Node], n.Ports[port.Peer].Num
		}
		lid += 4
		for _, a := range absent {
			port.Reach = port.Reach && a != p
		}
		if port.Reach {
			n.Register(p)
		}
		_ = g.Attach(target)
	}
	n.IndexLIDs()
	routes, _, err := routing.Route(g, nil, routing.Options{MaxLanes: 8})
	if err != nil {
		b.t.Fatal(err)
	}
	b.routes = routes
	b.sa.Up(b.now, n, Routes{routes, swOf})
}

// hosts are the end ports of the bench by name, h1 to h4; the last is port 1 of two.
type hosts [4]int32

// plug returns a bench with two switches joined by two links, four hosts of which the last is on both, and what more
// adds.
func plug(t testing.TB, cfg Config, more ...func(b *bench, s1 int32)) (*bench, hosts) {
	cfg.Prefix, cfg.Key, cfg.PacketLife = LinkLocalPrefix, 1, 18
	if cfg.Partitions == nil {
		cfg.Partitions = partition.Default()
	}
	b := &bench{t: t, net: sim.New(1)}
	b.sa = New(cfg, b)
	b.port = b.net.Add(netip.Addr{}, answerer{b})
	h := b.build()
	for _, f := range more {
		f(b, b.n.Nodes[4].First)
	}
	b.up()
	b.Asker = asker.New(t, uplink{b}, b.lid(h[1]))
	return b, h
}

// build builds the nodes that all benches have.
func (b *bench) build() (h hosts) {
	b.n = topology.New()
	for i, name := range []string{"h1", "h2", "h3"} {
		h[i] = b.node(name, mad.NodeCA, 1) + 1
	}
	h4 := b.node("h4", mad.NodeCA, 2)
	h[3] = h4 + 1
	s1, s2 := b.node("s1", mad.NodeSwitch, 8), b.node("s2", mad.NodeSwitch, 8)
	b.link(h[0]-1, 1, s1, 1)
	b.link(h[1]-1, 1, s1, 2)
	b.link(h[2]-1, 1, s2, 1)
	b.link(h4, 1, s2, 2)
	b.link(h4, 2, s1, 3)
	b.link(s1, 7, s2, 7)
	b.link(s1, 8, s2, 8)
	b.n.Self = h[0]
	b.n.Ports[h[0]].Info.CapabilityMask = mad.CapIsSM
	return h
}

func (b *bench) lid(p int32) ib.LID { return b.n.Ports[p].Info.LID }

func (b *bench) gid(p int32) ib.GID { return b.sa.gid(b.n.Ports[p].GUID) }

// member returns a request to have a port in a group.
func (b *bench) member(p int32, group ib.GID, state uint8) mad.MCMemberRecord {
	return mad.MCMemberRecord{MGID: group, PortGID: b.gid(p), JoinState: state, PKey: 0xffff, QKey: 5}
}

var broadcast = ib.GID{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 12: 0xff, 13: 0xff, 14: 0xff, 15: 0xff}

// Components of requests that join groups, and that make them (IBA 15.2.5.17.2).
const (
	joinMask   = mad.MemberMGID | mad.MemberPortGID | mad.MemberJoinState
	createMask = joinMask | mad.MemberQKey | mad.MemberPKey | mad.MemberSL | mad.MemberFlowLabel | mad.MemberTrafficClass
)

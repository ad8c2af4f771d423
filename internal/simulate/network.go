package simulate

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// headers are what a packet has around its payload: Ethernet, IPv4, UDP, BTH and ICRC.
	headers = eth.EthernetLen + eth.IPv4Len + eth.UDPLen + ib.BTHLen + ib.ICRCLen
	// onWire is what a frame takes on the wire besides its bytes: preamble, frame check sequence and the gap to the next.
	onWire = 24
	// waiting is how many of the longest frames a host hands to its station in advance.
	waiting = 4
	// stationBuffer is what a station has for frames besides headroom.
	stationBuffer = 2 << 20
	stationMTU    = 1500
	mtuSlack      = 100 // for the headers of packets in IP packets
)

// network is the switches and stations of a scenario, in shards.
type network struct {
	s         *scenario.Scenario
	shards    []shard
	at        []place // by node
	lookahead time.Duration
	apart     bool // shards are on two sides
	sided     bool // these go on by turns
	watch     ethernet.Watch
	addrs     []netip.Addr // of hosts, by node
	agreed    []Agreed
	leaf      []int   // of each host, by node
	towards   [][]int // by node that is a leaf: how far each node is from it
}

// place is a node's: its shard, and its number there.
type place struct{ shard, node int32 }

// newNetwork builds the network of a scenario. The error is a *scenario.Error.
func newNetwork(s *scenario.Scenario) (*network, error) {
	g, p := s.Graph, divide(s.Graph)
	n := &network{s: s, shards: make([]shard, p.count), at: make([]place, len(g.Nodes)), lookahead: p.lookahead,
		addrs: make([]netip.Addr, len(g.Nodes)), leaf: make([]int, len(g.Nodes)), towards: make([][]int, len(g.Nodes))}
	for i := range n.shards {
		n.shards[i].number = i
		n.shards[i].Random = rand.New(rand.NewPCG(s.Seed, uint64(i)<<1)).Uint64
	}
	for _, hosts := range []bool{true, false} { // so that hosts have the lowest numbers
		for i := range g.Nodes {
			if g.Nodes[i].Host != hosts {
				continue
			}
			if err := n.add(i, &n.shards[p.of[i]]); err != nil {
				return nil, n.refused(i, err)
			}
		}
	}
	if err := n.connect(); err != nil {
		return nil, err
	}
	if err := n.aggregate(); err != nil {
		return nil, err
	}
	n.apart = sides(n.shards)
	n.sided = n.apart
	n.number()
	for i := range g.Nodes {
		if g.Nodes[i].Host || s.Learning {
			continue
		}
		if err := n.Switch(i).SetRoutes(n.routes(i)); err != nil {
			return nil, n.refused(i, err)
		}
	}
	return n, nil
}

// side returns the side of a shard among those that go on by turns.
func (n *network) side(h *shard) int {
	if !n.sided {
		return 0
	}
	return h.side
}

// shardOf returns the shard of a node.
func (n *network) shardOf(node int) *shard { return &n.shards[n.at[node].shard] }

// Switch returns the switch of a node.
func (n *network) Switch(node int) *ethernet.Switch {
	return n.shardOf(node).Switch(int(n.at[node].node))
}

// connect connects the nodes, those of one shard in its fabric, and others by boxes.
func (n *network) connect() error {
	g := n.s.Graph
	for i := range n.shards {
		h := &n.shards[i]
		h.exits = make([][]exit, h.nodes)
	}
	for i := range g.Links {
		l := &g.Links[i]
		a, b := n.at[l.A], n.at[l.B]
		if a.shard != b.shard {
			n.leads(l.A, l.PortA, b, l.PortB)
			n.leads(l.B, l.PortB, a, l.PortA)
			continue
		}
		x, y := ethernet.End{Node: int(a.node), Port: l.PortA}, ethernet.End{Node: int(b.node), Port: l.PortB}
		if err := n.shards[a.shard].Connect(x, y); err != nil {
			return n.refused(l.A, err)
		}
	}
	for i := range g.Nodes {
		site := ethernet.Site{Switch: n.Switch(i)}
		for _, l := range g.Nodes[i].Links {
			node, port := g.Links[l].Other(i)
			site.Peers = append(site.Peers, ethernet.End{Node: node, Port: port})
		}
		for len(site.Peers) < site.Ports() { // the host's end of a station
			site.Peers = append(site.Peers, ethernet.End{Node: -1})
		}
		n.watch.Sites = append(n.watch.Sites, site)
	}
	return nil
}

// leads notes that a port of a node leads to a node in another shard.
func (n *network) leads(node, port int, to place, toPort int) {
	h, other := n.shardOf(node), &n.shards[to.shard]
	i := slices.IndexFunc(h.boxes, func(x *box) bool { return x.to == other })
	if i < 0 {
		i = len(h.boxes)
		x := &box{to: other}
		x.sent.first, x.before.first = clock.Never, clock.Never
		h.boxes, other.feeds = append(h.boxes, x), append(other.feeds, x)
	}
	exits := &h.exits[n.at[node].node]
	for len(*exits) <= port {
		*exits = append(*exits, exit{})
	}
	(*exits)[port] = exit{h.boxes[i], to.node, uint8(toPort)}
}

// refused says which field makes a node impossible.
func (n *network) refused(node int, err error) error {
	x := &n.s.Graph.Nodes[node]
	bad := &scenario.Error{File: n.s.File, Field: "topology", Value: x.Name + ": " + err.Error(), Allowed: "nodes that can be"}
	var field *ethernet.FieldError
	if !errors.As(err, &field) {
		return bad
	}
	bad.Value, bad.Allowed = fmt.Sprint(field.Value), field.Want
	switch {
	case x.Host && field.Field == "Buffer":
		l := &n.s.Graph.Links[x.Links[0]]
		bad.Field, bad.Value = "topology.delay", fmt.Sprintf("%v at %g Gb/s", l.Delay, float64(l.Rate)/1e9)
		bad.Allowed = fmt.Sprintf("less, where pauses are obeyed: the headroom at %s would be %v bytes", x.Name, field.Value)
	case x.Host:
		bad.Field = n.s.NICs[node].Path
	case field.Field == "Buffer" || field.Field == "Quanta":
		bad.Field = n.s.Switches[node].Path + "." + strings.ToLower(field.Field)
	default:
		bad.Field = n.s.Switches[node].Path
		bad.Value = field.Field + " of " + bad.Value
	}
	return bad
}

// mac is the address of a node.
func mac(node int) eth.MAC {
	return eth.MAC{2, 0x73, 0x76, byte(node >> 16), byte(node >> 8), byte(node)}
}

// head writes what all frames of a host begin with: Ethernet and IPv4 headers.
func (n *network) head(b []byte, node int) {
	(&eth.Ethernet{Src: mac(node), Type: eth.TypeIPv4}).Put(b)
	eth.IPv4(b[ipAt:]).Encode(0, 0, 0, 64, eth.ProtocolUDP, n.addrs[node].As4(), [4]byte{})
}

// next returns to which MAC frames of a host go that are for another: that of its switch, if switches have routes.
func (n *network) next(from, to int) eth.MAC {
	if n.s.Learning {
		return mac(to)
	}
	return mac(n.leaf[from])
}

// mtu is the longest IP packet that hosts send.
func (n *network) mtu() int {
	most := stationMTU
	for _, h := range n.s.Graph.Hosts {
		most = max(most, n.s.NICs[h].MTU+mtuSlack)
	}
	return most
}

func (n *network) add(i int, h *shard) error {
	x := &n.s.Graph.Nodes[i]
	if x.Host {
		return n.addHost(i, h)
	}
	c := n.s.Switches[i]
	ports := make([]ethernet.PortConfig, len(x.Links))
	for p := range x.Links {
		ports[p] = n.portOf(i, p)
	}
	entries := 1
	if n.s.Learning {
		entries = len(n.s.Graph.Hosts)
	}
	random := rand.New(rand.NewPCG(n.s.Seed, uint64(i)<<1|1))
	sw, err := ethernet.New(&h.Store, ethernet.Config{MAC: mac(i), Buffer: c.Buffer, Storm: c.Storm, Entries: entries,
		Seed: n.seed(i), Random: random.Uint64}, ports, n.bundles(i)...)
	if err != nil {
		return err
	}
	n.at[i] = place{int32(h.number), int32(h.AddSwitch(sw))}
	h.nodes++
	return nil
}

// portOf returns how a port of a switch is configured.
func (n *network) portOf(i, p int) ethernet.PortConfig {
	c, link := n.s.Switches[i], &n.s.Graph.Links[n.s.Graph.Nodes[i].Links[p]]
	peer, _ := link.Other(i)
	x := ethernet.PortConfig{Rate: link.Rate, Delay: link.Delay, MTU: n.mtu(), Trust: marked(c.Trust), Default: c.Default,
		FlowControl: c.Flow, Lossless: c.Lossless, Quanta: c.Quanta, Groups: c.Groups, Queues: c.Queues,
		Limit: scenario.Limit(c.MTU, n.mtu())}
	switch {
	case !n.s.Learning:
		x.Routed, x.Peer = true, mac(peer)
	case !n.s.Graph.Nodes[peer].Host:
		x.PVID, x.Tagged = bridge.DefaultVLAN, bridge.AllVLANs()
	}
	for _, own := range n.s.Ports {
		if own.Node == i && own.Port == p {
			own.Adapt(&x)
			x.Trust = marked(own.Trust)
		}
	}
	return x
}

// seed is that of which way a node chooses for a flow.
func (n *network) seed(node int) uint64 { return n.s.Seed<<20 ^ uint64(node) }

// bundles returns the ports of a switch that lead to the same host, where the switch has no routes, which say so else.
func (n *network) bundles(node int) [][]int {
	if !n.s.Learning {
		return nil
	}
	return n.s.Graph.Bundles(node)
}

// marked is what is trusted of frames here, which say their priority in one place: their DSCP.
func marked(t ethernet.Trust) ethernet.Trust {
	if t == ethernet.TrustPCP {
		return ethernet.TrustDSCP
	}
	return t
}

func (n *network) addHost(i int, h *shard) error {
	c := n.s.NICs[i]
	links := n.s.Graph.Nodes[i].Links
	link := &n.s.Graph.Links[links[0]]
	wire := ethernet.PortConfig{Rate: link.Rate, Delay: link.Delay, MTU: n.mtu(), Lossless: c.Lossless}
	n.agree(i, &wire)
	trust, otherwise := scenario.TrustOf(n.s.Graph, n.s.Switches, n.s.Ports, i)
	wire.Trust, wire.Default = marked(trust), otherwise
	switch {
	case c.Pause:
		wire.FlowControl = ethernet.GlobalPause
	case wire.Lossless != 0:
		wire.FlowControl = ethernet.PriorityPause
	}
	room := bits.OnesCount8(wire.Lossless) * (ethernet.Headroom(link.Rate, link.Delay, n.mtu()) + 2*n.mtu())
	if c.Pause {
		room = ethernet.Headroom(link.Rate, link.Delay, n.mtu()) + 2*n.mtu()
	}
	st, err := ethernet.NewStation(&h.Store, ethernet.StationConfig{Wire: wire, Links: len(links), Seed: n.seed(i), Take: c.Take,
		Waiting: waiting * len(links) * (n.mtu() + eth.EthernetLen + eth.VLANLen), Buffer: stationBuffer + len(links)*room})
	if err != nil {
		return err
	}
	n.at[i] = place{int32(h.number), int32(h.AddStation(st))}
	h.nodes++
	return nil
}

// number gives hosts their addresses: those at one switch have a prefix of 24 bits in common.
func (n *network) number() {
	g, leaves := n.s.Graph, 0
	for i := range g.Nodes {
		if g.Nodes[i].Tier != 1 {
			continue
		}
		host := 0
		for _, l := range g.Nodes[i].Links {
			if h, _ := g.Links[l].Other(i); g.Nodes[h].Host && !n.addrs[h].IsValid() {
				host++
				n.addrs[h] = netip.AddrFrom4([4]byte{10, byte(leaves >> 8), byte(leaves), byte(host)})
				n.leaf[h] = i
			}
		}
		n.towards[i] = g.Distances(i)
		leaves++
	}
}

// routes are those of a switch: over all ports that lead to a host by as few links as possible.
func (n *network) routes(at int) (all []ethernet.Route) {
	g := n.s.Graph
	for leaf, far := range n.towards {
		if far == nil || far[at] < 0 {
			continue
		}
		if leaf == at {
			all = append(all, n.toHosts(at)...)
			continue
		}
		var prefix netip.Prefix
		for _, l := range g.Nodes[leaf].Links {
			if h, _ := g.Links[l].Other(leaf); g.Nodes[h].Host {
				prefix, _ = n.addrs[h].Prefix(24)
			}
		}
		all = append(all, ethernet.Route{Prefix: prefix, Ports: n.closer(at, far)})
	}
	return all
}

// toHosts are the routes of a switch to its hosts, each over all links to it.
func (n *network) toHosts(at int) (all []ethernet.Route) {
	for _, h := range n.s.Graph.HostPorts(at) {
		all = append(all, ethernet.Route{Prefix: netip.PrefixFrom(n.addrs[h.Host], 32), Ports: h.Ports})
	}
	return all
}

// closer returns the ports of a node that lead closer.
func (n *network) closer(at int, far []int) (ports []int) {
	g := n.s.Graph
	for p, l := range g.Nodes[at].Links {
		if m, _ := g.Links[l].Other(at); !g.Nodes[m].Host && far[m] >= 0 && far[m] < far[at] {
			ports = append(ports, p)
		}
	}
	return ports
}

// ideal returns how long a flow takes in an idle network, from its start until its last byte has arrived.
func (n *network) ideal(from, to int, bytes int64, mtu int) time.Duration {
	g := n.s.Graph
	links := []int{g.Nodes[from].Links[0]}
	for at := n.leaf[from]; at != n.leaf[to]; {
		l := g.Nodes[at].Links[n.closer(at, n.towards[n.leaf[to]])[0]]
		links = append(links, l)
		at, _ = g.Links[l].Other(at)
	}
	links = append(links, g.Nodes[to].Links[0])
	packets := (bytes + int64(mtu) - 1) / int64(mtu)
	full := float64(mtu + headers + onWire)
	last := float64(bytes-(packets-1)*int64(mtu)) + headers + onWire
	if packets == 1 {
		last += ib.RETHLen
	}
	// When the last packet has left each link, and the one before it, which is as long as all before it.
	end, before, passed, slowest := 0., 0., 0., 0. // in ns
	for _, l := range links {
		byteTime := 8e9 / float64(g.Links[l].Rate)
		slowest = max(slowest, byteTime)
		passed += full * byteTime
		if packets > 1 {
			before = passed + float64(packets-2)*full*slowest + ib.RETHLen*slowest
		}
		end = max(end, before) + last*byteTime
		passed += float64(g.Links[l].Delay)
		end += float64(g.Links[l].Delay)
	}
	return time.Duration(end)
}

package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/os/inputfile"
)

// Fabric is what runs live of a scenario: its Ethernet, and an InfiniBand fabric beside it. What else there is in the file is of
// simulations, and is not looked at.
type Fabric struct {
	File string
	Seed uint64
	// Graph is the Ethernet; nil: there is none. Switches and NICs are as of Scenario.
	Graph    *Graph
	Switches []*Switch
	NICs     []*NIC
	Ports    []Port
	// Bundles are the ports of each node that lead to the same host of several links. Each of these has a host of its own in Graph.
	Bundles [][][]int
	// InfiniBand is the InfiniBand fabric; nil: there is none.
	InfiniBand *topology.Topology
}

// Port is how a port of a switch differs from the others.
type Port struct {
	Node, Port int // of the graph, from 0
	// PVID and Tagged are its VLANs, as of ethernet.PortConfig.
	PVID   uint16
	Tagged bridge.VLANs
	// Trust gives frames their priorities, and Default what that leaves.
	Trust   ethernet.Trust
	Default uint8
	// MTU is the longest IP packet that it takes and sends; 0: as long as hosts send.
	MTU int
	// Lossless are its lossless priorities, if OwnPFC; Pause is that it has pauses of the whole link instead.
	Lossless uint8
	Pause    bool
	OwnPFC   bool
	// LACP is how the bundle of the port is aggregated, if OwnLACP.
	LACP    LACP
	OwnLACP bool
}

// Adapt gives a port what it has of its own.
func (p *Port) Adapt(c *ethernet.PortConfig) {
	if p.PVID != 0 || p.Tagged != (bridge.VLANs{}) {
		c.PVID, c.Tagged = p.PVID, p.Tagged
	}
	c.Trust, c.Default = p.Trust, p.Default
	c.Limit = Limit(p.MTU, c.MTU)
	if p.OwnPFC {
		c.FlowControl, c.Lossless = ethernet.NoFlowControl, p.Lossless
		switch {
		case p.Pause:
			c.FlowControl = ethernet.GlobalPause
		case p.Lossless != 0:
			c.FlowControl = ethernet.PriorityPause
		}
	}
}

// Limit returns the longest IP packet of a port with an mtu, where there is none longer than most; 0: no other than that.
func Limit(mtu, most int) int { return min(mtu, most) }

// ReadFabric reads what is to run live from the text of a file, as Read.
func ReadFabric(file string, text []byte) (*Fabric, error) {
	root, err := parse(file, text)
	if err != nil {
		return nil, err
	}
	r := &reading{file: file, known: map[string]bool{}}
	f := r.fabric(r.root(root))
	if r.err != nil {
		return nil, r.err
	}
	return f, nil
}

func (r *reading) fabric(o *object) *Fabric {
	for _, name := range []string{"name", "description", "workload", "duration", "sample", "lean", "learning", "faults"} {
		o.get(name)
	}
	s := &Scenario{File: r.file, Seed: uint64(o.int("seed", 1, 0, 1<<53))}
	f := &Fabric{File: r.file, Seed: s.Seed, InfiniBand: r.infiniBand(o.object("infiniband"))}
	if t := o.object("topology"); f.InfiniBand == nil || t.n != nil {
		s.Graph = r.topology(t)
	}
	if r.err != nil {
		return f
	}
	if s.Graph != nil {
		s.switches(o)
		s.nics(o)
		f.Graph, f.Switches, f.NICs = s.Graph, s.Switches, s.NICs
		f.Ports = r.ports(o, s)
		f.distinct(r, o)
		f.apart()
	}
	o.end()
	return f
}

// distinct refuses names that a node of each kind has.
func (f *Fabric) distinct(r *reading, o *object) {
	if f.InfiniBand == nil {
		return
	}
	for i := range f.InfiniBand.Nodes {
		if name := f.InfiniBand.Nodes[i].ID; f.Graph.Find(name) >= 0 {
			r.fail(o.where("infiniband"), "infiniband", fmt.Sprintf("with a node %s", name), "names that no Ethernet node has")
		}
	}
}

// infiniBand reads the InfiniBand nodes; nil: there are none.
func (r *reading) infiniBand(o *object) *topology.Topology {
	if o.n == nil {
		return nil
	}
	kind := o.choice("kind", "star", "fat-tree", "torus", "netlist")
	rate, ok := topology.ParseRate(o.text("rate", "4xQDR"))
	if !ok {
		r.wrong(o.where("rate"), o.field("rate"), "a width and a speed, such as 4xEDR")
	}
	var t *topology.Topology
	var err error
	switch kind {
	case "star":
		t, err = topology.Star(o.int("hosts", 4, 1, 254), rate)
	case "fat-tree":
		t, err = topology.FatTree(topology.FatTreeShape{Radix: o.int("radix", 4, 2, 254), Levels: o.int("levels", 2, 2, 3),
			Hosts: o.int("hosts", 0, 0, mostHosts)}, rate)
	case "torus":
		t, err = topology.Torus([]int{o.int("switches", 5, 3, 64)}, o.int("hosts", 1, 1, 32), rate)
	case "netlist":
		t, err = r.readNetlist(o.text("file", ""))
	}
	if err != nil {
		r.fail(o.at, o.path, err.Error(), "nodes of InfiniBand")
	}
	o.end()
	return t
}

func (r *reading) readNetlist(name string) (*topology.Topology, error) {
	f, err := inputfile.Open(r.path(name), inputfile.Net)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return topology.ReadNetlist(f)
}

// ports reads how ports of switches differ: by the host at their other end, or as switch[port].
func (r *reading) ports(o *object, s *Scenario) (ports []Port) {
	all := o.object("ports")
	if all.n == nil {
		return nil
	}
	for _, name := range all.n.fields.names {
		x := all.object(name)
		p, ok := s.Graph.port(name)
		if !ok {
			r.fail(x.at, x.path, "no port of a switch", "a host, for the port at its link, or a switch with a port, such as leaf0[1]")
			return nil
		}
		p.PVID = uint16(x.int("pvid", 0, 1, bridge.LastVLAN))
		if trunk := x.text("trunk", ""); trunk != "" {
			var err error
			if p.Tagged, err = bridge.ParseVLANs(trunk); err != nil {
				r.wrong(x.where("trunk"), x.field("trunk"), "VLAN IDs as 10+20-29, or all")
			}
		}
		p.OwnPFC, p.Lossless, p.Pause = x.has("pfc") || x.has("pause"), x.priorities("pfc", 0), x.bool("pause")
		if p.Pause && p.Lossless != 0 {
			r.fail(x.where("pause"), x.field("pause"), "true", "false where pfc has priorities")
		}
		base := s.Switches[p.Node]
		p.Trust, p.Default = x.trust(base.Trust, base.Default)
		p.MTU = x.int("mtu", base.MTU, leastMTU, mostMTU)
		p.LACP = base.LACP
		p.LACP.read(x)
		r.checkBundle(x, s.Graph, &p, ports)
		x.end()
		ports = append(ports, p)
	}
	return ports
}

// apart gives each link of a host with several a host of its own, since an adapter has one link: that of the first keeps the name, and
// others have their number behind it, as host0[2]. Their ports at the switch are bundles.
func (f *Fabric) apart() {
	g := f.Graph
	f.Bundles = make([][][]int, len(g.Nodes))
	for i := range g.Nodes {
		if !g.Nodes[i].Host {
			f.Bundles[i] = g.Bundles(i)
		}
	}
	for _, h := range g.Hosts {
		links := g.Nodes[h].Links
		for i := 1; i < len(links); i++ {
			node := g.host(fmt.Sprintf("%s[%d]", g.Nodes[h].Name, i+1))
			l := &g.Links[links[i]]
			if l.A == h {
				l.A, l.PortA = node, 0
			} else {
				l.B, l.PortB = node, 0
			}
			g.Nodes[node].Links = []int{links[i]}
			f.NICs, f.Switches, f.Bundles = append(f.NICs, f.NICs[h]), append(f.Switches, nil), append(f.Bundles, nil)
		}
		g.Nodes[h].Links = links[:1]
	}
}

// TrustOf returns what gives frames their priority at the switch of a host, and which one what that leaves: both ends of its link give
// them the same.
func TrustOf(g *Graph, switches []*Switch, ports []Port, host int) (ethernet.Trust, uint8) {
	l := &g.Links[g.Nodes[host].Links[0]]
	n, port := l.Other(host)
	for i := range ports {
		if p := &ports[i]; p.Node == n && p.Port == port {
			return p.Trust, p.Default
		}
	}
	if s := switches[n]; s != nil {
		return s.Trust, s.Default
	}
	return ethernet.TrustDSCP, 0
}

// port finds a port of a switch by a name: as leaf0[1], or a host, for the port at its link; as host0[2] at its second.
func (g *Graph) port(name string) (p Port, ok bool) {
	if n := g.Find(name); n >= 0 && g.Nodes[n].Host {
		name += "[1]"
	}
	node, rest, _ := strings.Cut(name, "[")
	number, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
	n := g.Find(node)
	if err != nil || !strings.HasSuffix(rest, "]") || n < 0 || number < 1 || number > len(g.Nodes[n].Links) {
		return p, false
	}
	p.Node, p.Port = n, number-1
	if g.Nodes[n].Host {
		p.Node, p.Port = g.Links[g.Nodes[n].Links[number-1]].Other(n)
	}
	return p, true
}

package scenario

import (
	"errors"
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/wire/mad"
)

// Limits and defaults of a topology.
const (
	mostHosts    = 4096
	mostNodes    = 8192
	mostDelay    = time.Second
	defaultDelay = time.Microsecond
	defaultRate  = 40e9
	// mostBundle is how many links a host may have.
	mostBundle = 8
)

// topology reads what the network consists of.
func (r *reading) topology(o *object) *Graph {
	g := new(Graph)
	kind := o.choice("kind", "incast", "star", "leaf-spine", "fat-tree", "ring", "links", "netlist")
	rate := o.rate("rate", defaultRate)
	delay := o.time("delay", defaultDelay, 0, mostDelay)
	switch kind {
	case "incast":
		senders := o.int("senders", 2, 1, ethernet.MostPorts-1)
		hosts := make([]int, 0, senders+1)
		for i := range senders {
			hosts = append(hosts, g.host(fmt.Sprintf("sender%d", i)))
		}
		hosts = append(hosts, g.host("receiver"))
		g.star(hosts, o.bundle(), rate, delay)
	case "star":
		hosts := make([]int, o.int("hosts", 4, 2, ethernet.MostPorts))
		for i := range hosts {
			hosts[i] = g.host(fmt.Sprintf("host%d", i))
		}
		g.star(hosts, o.bundle(), rate, delay)
	case "leaf-spine":
		r.leafSpine(o, g, rate, delay)
	case "fat-tree":
		shape := topology.FatTreeShape{Radix: o.int("radix", 4, 2, ethernet.MostPorts), Levels: o.int("levels", 3, 2, 3),
			Hosts: o.int("hosts", 0, 0, mostHosts)}
		t, err := topology.FatTree(shape, topology.Rate{})
		r.generated(o, g, t, err, rate, delay)
	case "ring":
		t, err := topology.Torus([]int{o.int("switches", 5, 3, 64)}, o.int("hosts", 1, 1, 32), topology.Rate{})
		r.generated(o, g, t, err, rate, delay)
	case "links":
		r.links(o, g, rate, delay)
	case "netlist":
		r.netlist(o, g, rate, delay)
	}
	o.end()
	r.check(o, g)
	return g
}

// bundle reads how many links each host has.
func (o *object) bundle() int { return o.int("bundle", 1, 1, mostBundle) }

// star puts hosts around a switch.
func (g *Graph) star(hosts []int, bundle int, rate uint64, delay time.Duration) {
	s := g.sw("switch")
	for _, h := range hosts {
		for range bundle {
			g.link(h, s, rate, delay)
		}
	}
}

func (r *reading) leafSpine(o *object, g *Graph, rate uint64, delay time.Duration) {
	leaves := o.int("leaves", 4, 1, 512)
	spines := o.int("spines", 2, 1, ethernet.MostPorts-1)
	hosts := o.int("hosts", 4, 1, ethernet.MostPorts-spines) // of a leaf
	bundle := o.bundle()
	uplink := o.rate("uplink_rate", rate)
	if leaves > ethernet.MostPorts {
		r.wrong(o.where("leaves"), o.field("leaves"), fmt.Sprintf("1 to %d, the ports of a spine", ethernet.MostPorts))
		return
	}
	all := make([]int, leaves*hosts)
	for i := range all {
		all[i] = g.host(fmt.Sprintf("host%d", i))
	}
	first := len(g.Nodes)
	for i := range leaves {
		g.sw(fmt.Sprintf("leaf%d", i))
	}
	for i := range spines {
		g.sw(fmt.Sprintf("spine%d", i))
	}
	for i, h := range all {
		for range bundle {
			g.link(h, first+i/hosts, rate, delay)
		}
	}
	for l := range leaves {
		for s := range spines {
			g.link(first+l, first+leaves+s, uplink, delay)
		}
	}
}

// generated takes over what a generator has made.
func (r *reading) generated(o *object, g *Graph, t *topology.Topology, err error, rate uint64, delay time.Duration) {
	var bad *topology.ParameterError
	if errors.As(err, &bad) {
		r.fail(o.at, o.field(bad.Name), fmt.Sprint(bad.Value), bad.Allowed)
		return
	}
	if err != nil {
		r.fail(o.at, o.path, err.Error(), "")
		return
	}
	r.take(o, g, t, func(*topology.Port) uint64 { return rate }, delay)
}

// take takes over the nodes and links of a topology.
func (r *reading) take(o *object, g *Graph, t *topology.Topology, rate func(*topology.Port) uint64, delay time.Duration) {
	if len(t.Nodes) > mostNodes {
		r.fail(o.at, o.path, fmt.Sprintf("%d nodes", len(t.Nodes)), fmt.Sprintf("%d nodes", mostNodes))
		return
	}
	for i := range t.Nodes {
		if n := &t.Nodes[i]; n.Type == mad.NodeCA {
			g.host(n.ID)
		} else {
			g.sw(n.ID)
		}
	}
	for i := range t.Nodes {
		for p := range t.Nodes[i].Ports {
			x := &t.Nodes[i].Ports[p]
			if x.Linked() && (int(x.Peer) > i || int(x.Peer) == i && int(x.PeerPort) > p) {
				g.link(i, int(x.Peer), rate(x), delay)
			}
		}
	}
}

// netlist reads the topology of a file that ibnetdiscover has printed, softvpi fabric generate or a user. A rate that the scenario
// gives counts for all links, otherwise width and speed there do.
func (r *reading) netlist(o *object, g *Graph, rate uint64, delay time.Duration) {
	name := o.text("file", "")
	if name == "" {
		r.fail(o.where("file"), o.field("file"), `""`, "a netlist, as softvpi fabric generate prints it")
		return
	}
	f, err := inputfile.Open(r.path(name), inputfile.Net)
	if err != nil {
		r.fail(o.where("file"), o.field("file"), err.Error(), "a netlist, as softvpi fabric generate prints it")
		return
	}
	defer f.Close()
	t, err := topology.ReadNetlist(f)
	if err != nil {
		r.fail(o.where("file"), o.field("file"), fmt.Sprintf("%s: %v", name, err), "a netlist")
		return
	}
	r.take(o, g, t, func(p *topology.Port) uint64 {
		if o.has("rate") {
			return rate
		}
		return uint64(float64(mad.Lanes(p.Width)) * p.Speed.LaneMbps() * 1e6)
	}, delay)
}

// links reads nodes and links one by one.
func (r *reading) links(o *object, g *Graph, rate uint64, delay time.Duration) {
	add := func(field string, node func(string) int) {
		for i, name := range o.names(field) {
			if g.Find(name) >= 0 {
				r.fail(o.where(field), fmt.Sprintf("%s.%d", o.field(field), i), fmt.Sprintf("%q again", name), "a name that no other node has")
				return
			}
			if len(g.Nodes) == mostNodes {
				r.fail(o.where(field), o.field(field), fmt.Sprintf("node %d", mostNodes+1), fmt.Sprintf("%d nodes", mostNodes))
				return
			}
			node(name)
		}
	}
	add("hosts", g.host)
	add("switches", g.sw)
	for _, l := range o.objects("links") {
		a, b := l.node("from", g), l.node("to", g)
		rate, delay := l.rate("rate", rate), l.time("delay", delay, 0, mostDelay)
		l.end()
		if a == b {
			r.fail(l.at, l.path, "a link of a node with itself", "two nodes")
		}
		if r.err != nil {
			return
		}
		g.link(a, b, rate, delay)
	}
}

// names returns a field that is an array of names.
func (o *object) names(name string) (all []string) {
	n := o.get(name)
	if n == nil {
		return nil
	}
	for _, x := range n.list {
		s, ok := x.scalar.(string)
		if !ok || s == "" || len(s) > 64 {
			o.r.wrong(x, o.field(name), "an array of names, of 1 to 64 bytes each")
			return nil
		}
		all = append(all, s)
	}
	if n.list == nil {
		o.r.wrong(n, o.field(name), "an array of names")
	}
	return all
}

// node returns the node that a field names; 0 after an error.
func (o *object) node(name string, g *Graph) int {
	i := g.Find(o.text(name, ""))
	if i < 0 {
		o.r.wrong(o.where(name), o.field(name), "the name of a host or switch of the topology")
		return 0
	}
	return i
}

// check refuses what no network is.
func (r *reading) check(o *object, g *Graph) {
	if r.err != nil {
		return
	}
	if len(g.Hosts) < 2 || len(g.Hosts) > mostHosts {
		r.fail(o.at, o.path, fmt.Sprintf("of %d hosts", len(g.Hosts)), fmt.Sprintf("2 to %d hosts", mostHosts))
		return
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		switch k := len(n.Links); {
		case n.Host && (k < 1 || k > mostBundle):
			r.fail(o.at, o.path, fmt.Sprintf("with %d links at the host %s", k, n.Name), fmt.Sprintf("1 to %d links at each host", mostBundle))
		case k > ethernet.MostPorts:
			r.fail(o.at, o.path, fmt.Sprintf("with %d links at the switch %s", k, n.Name), fmt.Sprintf("%d links at a switch", ethernet.MostPorts))
		}
	}
	if r.err != nil {
		return
	}
	for _, h := range g.Hosts {
		r.checkLinks(o, g, h)
	}
	if r.err != nil {
		return
	}
	for i, d := range g.Distances(g.Hosts[0]) {
		if d < 0 && g.Nodes[i].Host {
			r.fail(o.at, o.path, fmt.Sprintf("without a way from %s to %s", g.Nodes[g.Hosts[0]].Name, g.Nodes[i].Name), "one network")
			return
		}
	}
	if n := g.tiers(); n >= 0 {
		r.fail(o.at, o.path, fmt.Sprintf("with a switch %s that no host reaches", g.Nodes[n].Name), "one network")
	}
}

// checkLinks refuses links of a host that are no bundle.
func (r *reading) checkLinks(o *object, g *Graph, host int) {
	n := &g.Nodes[host]
	first := &g.Links[n.Links[0]]
	to, _ := first.Other(host)
	if g.Nodes[to].Host {
		r.fail(o.at, o.path, fmt.Sprintf("with a link of the hosts %s and %s", n.Name, g.Nodes[to].Name), "links of hosts to switches")
		return
	}
	for _, i := range n.Links[1:] {
		l := &g.Links[i]
		switch other, _ := l.Other(host); {
		case other != to:
			r.fail(o.at, o.path, fmt.Sprintf("with links of the host %s to %s and %s", n.Name, g.Nodes[to].Name, g.Nodes[other].Name),
				"links of a host to one switch")
		case l.Rate != first.Rate || l.Delay != first.Delay:
			r.fail(o.at, o.path, fmt.Sprintf("with links of the host %s that differ", n.Name), "links of a host with the same rate and delay")
		}
	}
}

package scenario

import "time"

// Graph is the nodes of a network and the links between them.
type Graph struct {
	Nodes []Node
	Links []Link
	// Hosts are the nodes that are hosts, in their order.
	Hosts []int
}

// Node is a host or a switch.
type Node struct {
	Name string
	Host bool
	// Host is the number of the host among the hosts.
	Number int
	// Tier is how far the node is from hosts: 0 is a host, 1 a switch that has some.
	Tier  int
	Links []int // in the order of ports
}

// Link is one between two nodes.
type Link struct {
	A, B         int
	PortA, PortB int
	Rate         uint64
	Delay        time.Duration
}

// Other returns the link's end that is not at a node, and the port there.
func (l *Link) Other(node int) (other, port int) {
	if l.A == node {
		return l.B, l.PortB
	}
	return l.A, l.PortA
}

// Port returns the port of a node at the link.
func (l *Link) Port(node int) int {
	if l.A == node {
		return l.PortA
	}
	return l.PortB
}

func (g *Graph) host(name string) int {
	g.Hosts = append(g.Hosts, len(g.Nodes))
	g.Nodes = append(g.Nodes, Node{Name: name, Host: true, Number: len(g.Hosts) - 1})
	return len(g.Nodes) - 1
}

func (g *Graph) sw(name string) int {
	g.Nodes = append(g.Nodes, Node{Name: name, Tier: -1})
	return len(g.Nodes) - 1
}

func (g *Graph) link(a, b int, rate uint64, delay time.Duration) {
	x, y := &g.Nodes[a], &g.Nodes[b]
	g.Links = append(g.Links, Link{A: a, B: b, PortA: len(x.Links), PortB: len(y.Links), Rate: rate, Delay: delay})
	x.Links = append(x.Links, len(g.Links)-1)
	y.Links = append(y.Links, len(g.Links)-1)
}

// tiers finds the tiers of all nodes; it returns a node that no host reaches, or -1.
func (g *Graph) tiers() int {
	var next []int
	next = append(next, g.Hosts...)
	for len(next) > 0 {
		n := next[0]
		next = next[1:]
		for _, l := range g.Nodes[n].Links {
			if m, _ := g.Links[l].Other(n); g.Nodes[m].Tier < 0 {
				g.Nodes[m].Tier = g.Nodes[n].Tier + 1
				next = append(next, m)
			}
		}
	}
	for i := range g.Nodes {
		if g.Nodes[i].Tier < 0 {
			return i
		}
	}
	return -1
}

// ways returns how many links there are, those of a bundle as one.
func (g *Graph) ways() int {
	n := len(g.Links)
	for _, h := range g.Hosts {
		n -= len(g.Nodes[h].Links) - 1
	}
	return n
}

// HostPorts are the ports of a node that lead to a host.
type HostPorts struct {
	Host  int // its node
	Ports []int
}

// HostPorts returns the ports of a node that lead to hosts, by host in the order of the first port of each.
func (g *Graph) HostPorts(node int) (all []HostPorts) {
	at := map[int]int{}
	for p, l := range g.Nodes[node].Links {
		h, _ := g.Links[l].Other(node)
		if !g.Nodes[h].Host {
			continue
		}
		i, there := at[h]
		if !there {
			i = len(all)
			at[h] = i
			all = append(all, HostPorts{Host: h})
		}
		all[i].Ports = append(all[i].Ports, p)
	}
	return all
}

// Bundles returns the ports of a node that lead to the same host, where there are several.
func (g *Graph) Bundles(node int) (all [][]int) {
	for _, h := range g.HostPorts(node) {
		if len(h.Ports) > 1 {
			all = append(all, h.Ports)
		}
	}
	return all
}

// Distances returns how many links each node is away from one, over switches; -1: it is not reached.
func (g *Graph) Distances(from int) []int {
	all := make([]int, len(g.Nodes))
	for i := range all {
		all[i] = -1
	}
	all[from] = 0
	next := []int{from}
	for len(next) > 0 {
		n := next[0]
		next = next[1:]
		if g.Nodes[n].Host && n != from {
			continue
		}
		for _, l := range g.Nodes[n].Links {
			if m, _ := g.Links[l].Other(n); all[m] < 0 {
				all[m] = all[n] + 1
				next = append(next, m)
			}
		}
	}
	return all
}

// Find returns the node of a name, or -1.
func (g *Graph) Find(name string) int {
	for i := range g.Nodes {
		if g.Nodes[i].Name == name {
			return i
		}
	}
	return -1
}

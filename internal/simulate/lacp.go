package simulate

import (
	"fmt"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/aggregation"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
)

// Aggregated is a port of a bundle that follows LACP, at a switch or a host, at the end of the run.
type Aggregated struct {
	Node string `json:"node"`
	Port int    `json:"port"`
	Peer string `json:"peer"`
	// State is that of the port's mux machine (IEEE 802.1AX, 6.4.15), or down, or standby.
	State string `json:"state"`
	// Partner is the system, key and port at the other end; empty: it is silent.
	Partner  string `json:"partner"`
	Sent     uint64 `json:"sent"`
	Heard    uint64 `json:"heard"`
	Timeouts uint64 `json:"timeouts"`
	// Changes are when it began or ceased to take or to send frames, since the run began.
	Changes []Joined `json:"changes,omitempty"`
}

// Joined is what a port of a bundle may do from a time on.
type Joined struct {
	At    float64 `json:"at_us"`
	Takes bool    `json:"takes"`
	Sends bool    `json:"sends"`
}

// joined is a Joined of a port of a shard.
type joined struct {
	port ethernet.End
	Joined
}

// mostJoined is how many of them a shard keeps.
const mostJoined = 1 << 16

// aggregate lets switches and hosts aggregate links by LACP, as they do live. Their systems have talked before the run begins; what they
// say in it are frames on the links.
func (n *network) aggregate() error {
	for i := range n.s.Graph.Nodes {
		groups := n.groups(i)
		if len(groups) == 0 {
			continue
		}
		h := n.shardOf(i)
		if h.bonds == nil {
			h.bonds = aggregation.New(&h.Fabric)
			h.bonds.Before = talk
		}
		if _, err := h.bonds.Add(int(n.at[i].node), mac(i), groups); err != nil {
			return n.refused(i, err)
		}
	}
	lines, ends := n.lines()
	aggregation.Converse(lines, talk)
	for i := range n.shards {
		if h := &n.shards[i]; h.bonds != nil {
			h.bonds.Begin(0)
			h.bonds.Changed = h.changed
		}
	}
	n.leaveAlone(ends)
	return nil
}

// groups returns the bundles of a node that follow LACP.
func (n *network) groups(node int) (groups []aggregation.Group) {
	g := n.s.Graph
	if g.Nodes[node].Host {
		return n.hostGroups(node)
	}
	for _, ports := range g.Bundles(node) {
		if l := n.s.LACPOf(node, ports); l.On {
			groups = append(groups, aggregation.Group{LACP: aggregation.LACP(l), Key: uint16(ports[0] + 1), Ports: ports})
		}
	}
	return groups
}

// hostGroups returns the links of a host, those with the same key together.
func (n *network) hostGroups(host int) (groups []aggregation.Group) {
	links, l := len(n.s.Graph.Nodes[host].Links), n.hostLACP(host)
	if links < 2 || !l.On {
		return nil
	}
	for p := range links {
		key := uint16(1)
		if keys := n.s.NICs[host].LACP.Keys; keys != nil {
			key = keys[p]
		}
		i := slices.IndexFunc(groups, func(g aggregation.Group) bool { return g.Key == key })
		if i < 0 {
			i = len(groups)
			groups = append(groups, aggregation.Group{LACP: aggregation.LACP(l), Key: key})
		}
		groups[i].Ports = append(groups[i].Ports, p)
	}
	return groups
}

// hostLACP returns how a host aggregates its links: where it is not said, by LACP if its switch does.
func (n *network) hostLACP(host int) scenario.LACP {
	l := n.s.NICs[host].LACP
	if l.Own {
		return l.LACP
	}
	g := n.s.Graph
	at, _ := g.Links[g.Nodes[host].Links[0]].Other(host)
	for _, b := range g.HostPorts(at) {
		if b.Host == host {
			l.On = n.s.LACPOf(at, b.Ports).On
		}
	}
	return l.LACP
}

// lines returns the links of hosts with several where an end speaks LACP, and the nodes at their ends.
func (n *network) lines() (lines []aggregation.Line, ends []int) {
	g := n.s.Graph
	for _, host := range g.Hosts {
		if len(g.Nodes[host].Links) < 2 {
			continue
		}
		for p, l := range g.Nodes[host].Links {
			at, port := g.Links[l].Other(host)
			x := aggregation.Line{A: n.end(host, p), B: n.end(at, port), Rate: g.Links[l].Rate}
			if x.A.Bond != nil || x.B.Bond != nil {
				lines, ends = append(lines, x), append(ends, host, at)
			}
		}
	}
	slices.Sort(ends)
	return lines, slices.Compact(ends)
}

// end returns an end of a line.
func (n *network) end(node, port int) aggregation.Side {
	x := aggregation.Side{Port: port}
	if h := n.shardOf(node); h.bonds != nil {
		x.Bond = h.bonds.Of(int(n.at[node].node))
	}
	return x
}

// leaveAlone lets what comes of LACP to nodes that speak none on a link end there.
func (n *network) leaveAlone(nodes []int) {
	for _, i := range nodes {
		sw := n.Switch(i)
		own := sw.Slow
		sw.Slow = func(now clock.Time, port int, frame []byte) bool {
			if own != nil {
				own(now, port, frame)
			}
			return true
		}
	}
}

// changed notes what a port of a bundle may do from now on.
func (h *shard) changed(now clock.Time, at ethernet.End) {
	if len(h.joins) < mostJoined {
		takes, sends := h.Port(at).Member()
		h.joins = append(h.joins, joined{at, Joined{us(now), takes, sends}})
	}
}

// aggregated returns how the ports are that follow LACP.
func (r *Run) aggregated() (all []Aggregated) {
	g := r.s.Graph
	for i := range g.Nodes {
		h, at := r.n.shardOf(i), int(r.n.at[i].node)
		if h.bonds == nil || h.bonds.Of(at) == nil {
			continue
		}
		b := h.bonds.Of(at)
		for k, p := range b.Ports {
			peer, _ := g.Links[g.Nodes[i].Links[p]].Other(i)
			s := b.Status(k)
			x := Aggregated{Node: g.Nodes[i].Name, Port: p, Peer: g.Nodes[peer].Name, State: s.State(), Sent: s.Sent, Heard: s.Heard,
				Timeouts: s.Timeouts}
			if s.Speaks() {
				x.Partner = fmt.Sprintf("%v key %d port %d", s.Partner.System, s.Partner.Key, s.Partner.Port)
			}
			for _, j := range h.joins {
				if j.port == (ethernet.End{Node: at, Port: p}) {
					x.Changes = append(x.Changes, j.Joined)
				}
			}
			all = append(all, x)
		}
	}
	return all
}

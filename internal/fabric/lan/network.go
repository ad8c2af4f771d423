package lan

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/aggregation"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/fabric/state"
)

// Config describes a network.
type Config struct {
	Nodes []Node
	// Links connect two ports; that of a host is port 0.
	Links []Link
	// Timing keeps rates and delays of links. Without it links carry 1 Tb/s without delay, as fast as the machine can.
	Timing bool
	// Tell is told of incidents: pauses that do not end, and queues that wait for each other; nil: nobody is.
	Tell func(state.Incident)
	// Random is the source of losses.
	Random func() uint64
}

// Node is a host or a switch.
type Node struct {
	Name string
	// LLDP is what a switch says of itself.
	LLDP LLDP
	// Station is how the host's end of its link is configured; nil: the node is a switch, of these ports.
	Station *ethernet.StationConfig
	// Own says that the host's end obeys and sends the pauses of its configuration, whatever the adapter's port does; false: it does as
	// that does.
	Own    bool
	Switch ethernet.Config
	// Bundles are sets of ports, from 0, that lead to the same host, which has as many links (link aggregation, chosen by flow).
	Bundles [][]int
	// LACP is how the switch aggregates each of these, in their order; those behind its end are static.
	LACP  []LACP
	Ports []ethernet.PortConfig
}

// Link is one between two ports of nodes.
type Link struct{ A, B ethernet.End }

// untimed is the rate of links whose rate is not kept, in bits per second.
const untimed = 1e12

// Network is a network that runs as it is told. One goroutine at a time may use it and its jacks.
type Network struct {
	fabric ethernet.Fabric
	domain *ethernet.Domain // nil: there is one switch
	cfg    Config
	timing bool
	jacks  []*Jack // by node; nil: nobody is plugged in there
	hung   []bool  // by node: the host takes nothing
	own    []bool  // by node: its pauses are not those of the adapter
	// pulled are links whose cables are out, by linkOf, and until when.
	pulled map[ethernet.End]clock.Time
	flaps  clock.Time // when the first of them is put back in
	news   []*Jack
	agents agents
	bonds  *aggregation.Bonds
	watch  watch
}

// NodeError says which node's configuration is invalid, and how.
type NodeError struct {
	Node string
	Err  error
}

// Error implements error.
func (e *NodeError) Error() string { return fmt.Sprintf("%s: %v", e.Node, e.Err) }

// Unwrap returns what is wrong with the node, an *ethernet.FieldError.
func (e *NodeError) Unwrap() error { return e.Err }

// New builds a network. Links of hosts are down until adapters are plugged in. The error is a *NodeError.
func New(now clock.Time, cfg Config) (*Network, error) {
	n := &Network{cfg: cfg, timing: cfg.Timing, jacks: make([]*Jack, len(cfg.Nodes)), hung: make([]bool, len(cfg.Nodes)),
		own: make([]bool, len(cfg.Nodes)), flaps: clock.Never, pulled: map[ethernet.End]clock.Time{}}
	n.fabric.Random = cfg.Random
	n.fabric.Deliver = n.deliver
	for i := range cfg.Nodes {
		n.own[i] = cfg.Nodes[i].Own
		if err := n.add(&cfg.Nodes[i]); err != nil {
			return nil, &NodeError{cfg.Nodes[i].Name, err}
		}
	}
	for _, l := range cfg.Links {
		if err := n.fabric.Connect(l.A, l.B); err != nil {
			return nil, &NodeError{cfg.Nodes[l.A.Node].Name, err}
		}
	}
	if _, switches, _ := n.Counts(); switches > 1 {
		n.domain = ethernet.NewDomain(&n.fabric)
	}
	for i := range cfg.Nodes {
		if n.Host(i) {
			n.fabric.SetUp(now, ethernet.End{Node: i}, false)
		}
	}
	n.newAgents(now)
	if err := n.newBonds(now); err != nil {
		return nil, err
	}
	return n, nil
}

// free takes rate and delay from a port, if they are not kept.
func (n *Network) free(p *ethernet.PortConfig) {
	if !n.timing {
		p.Rate, p.Delay = untimed, 0
	}
}

func (n *Network) add(x *Node) error {
	if x.Station != nil {
		c := *x.Station
		c.PassPauses = true
		n.free(&c.Wire)
		s, err := ethernet.NewStation(&n.fabric.Store, c)
		if err == nil {
			n.fabric.AddStation(s)
		}
		return err
	}
	ports := append([]ethernet.PortConfig(nil), x.Ports...)
	for i := range ports {
		n.free(&ports[i])
	}
	s, err := ethernet.New(&n.fabric.Store, x.Switch, ports, x.Bundles...)
	if err == nil {
		n.fabric.AddSwitch(s)
	}
	return err
}

// Timed reports whether the rates of links are kept.
func (n *Network) Timed() bool { return n.timing }

// Nodes returns the number of nodes.
func (n *Network) Nodes() int { return len(n.cfg.Nodes) }

// Counts returns the numbers of hosts, switches and links.
func (n *Network) Counts() (hosts, switches, links int) {
	for i := range n.cfg.Nodes {
		if n.Host(i) {
			hosts++
		}
	}
	return hosts, len(n.cfg.Nodes) - hosts, len(n.cfg.Links)
}

// Name returns the name of a node.
func (n *Network) Name(node int) string { return n.cfg.Nodes[node].Name }

// Host reports whether a node is a host.
func (n *Network) Host(node int) bool { return n.fabric.Station(node) != nil }

// Find returns the node of a name, or -1.
func (n *Network) Find(name string) int {
	for i := range n.cfg.Nodes {
		if n.cfg.Nodes[i].Name == name {
			return i
		}
	}
	return -1
}

// Deadline returns when Advance is wanted next.
func (n *Network) Deadline() clock.Time {
	return clock.Min(clock.Min(clock.Min(n.fabric.Deadline(), n.flaps), n.bonds.Deadline()), clock.Min(n.nextWord(), n.watch.next))
}

// Advance lets happen what is due. Whoever drives the network may be late: what frames and pauses do comes first then, each at its
// time, before anything is done at the present one, at which pauses of long ago count as over.
func (n *Network) Advance(now clock.Time) {
	n.fabric.Advance(now)
	if n.flaps <= now {
		n.endFlaps(now)
	}
	n.speak(now)
	n.bonds.Advance(now)
	n.look(now)
	n.fabric.Advance(now)
	for {
		node, _, ok := n.fabric.Room()
		if !ok {
			return
		}
		if j := n.jacks[node]; j != nil {
			j.tell()
		}
	}
}

// News returns a jack at which frames wait, or where there is room again after Transmit had none, or whose link has changed; nil: there
// is none.
func (n *Network) News() *Jack {
	if len(n.news) == 0 {
		return nil
	}
	j := n.news[len(n.news)-1]
	n.news = n.news[:len(n.news)-1]
	j.told = false
	return j
}

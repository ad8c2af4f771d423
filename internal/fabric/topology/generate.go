package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/wire/mad"
)

// ParameterError says which parameter of a generator is invalid. Test for it with errors.As.
type ParameterError struct {
	Name    string
	Value   int
	Allowed string
}

// Error implements error.
func (e *ParameterError) Error() string {
	return fmt.Sprintf("%s is %d; allowed: %s", e.Name, e.Value, e.Allowed)
}

func within(name string, v, low, high int) error {
	if v < low || v > high {
		return &ParameterError{name, v, fmt.Sprintf("%d to %d", low, high)}
	}
	return nil
}

// Rate is the width and speed of all links that a generator creates. The zero value is 4x QDR.
type Rate struct {
	Width mad.Width
	Speed mad.Speed
}

// ParseRate parses a rate such as 4xEDR; ok reports whether it is one.
func ParseRate(text string) (r Rate, ok bool) {
	lanes, speed, _ := strings.Cut(text, "x")
	n, err := strconv.Atoi(lanes)
	if err != nil {
		return Rate{}, false
	}
	r.Width = mad.WidthOf(n)
	r.Speed, ok = mad.ParseSpeed(speed)
	return r, ok && r.Width != 0
}

// builder builds the nodes of a generated topology: all channel adapters come first, because programs
// attach to the first node.
type builder struct {
	Topology
	rate     Rate
	ca, sw   uint64
	switches int // index of the first switch
}

func newBuilder(r Rate) *builder {
	if r.Width == 0 {
		r.Width = mad.Width4x
	}
	if r.Speed == mad.SpeedNone {
		r.Speed = mad.SpeedQDR
	}
	return &builder{rate: r, ca: firstCAGUID, sw: firstSwitchGUID}
}

// check refuses topologies above the limits.
func (b *builder) check(hosts, hostPorts, switches, radix int) error {
	if nodes := hosts + switches; nodes > maxNodes || hosts*(hostPorts+1)+switches*(radix+1) > maxPorts {
		return &ParameterError{"number of nodes", nodes, fmt.Sprintf("%d with %d ports", maxNodes, maxPorts)}
	}
	return nil
}

// adapters adds n channel adapters named node00000 and so on, which come before all switches.
func (b *builder) adapters(n, ports int) {
	for range n {
		id := fmt.Sprintf("node%05d", len(b.Nodes))
		b.Nodes = append(b.Nodes, NewNode(mad.NodeCA, id, id, ports, b.ca))
		b.ca += GUIDs(mad.NodeCA, ports)
	}
	b.switches = len(b.Nodes)
}

// add adds n switches with names that begin with kind, and returns the index of the first.
func (b *builder) add(kind string, n, ports int) int {
	first := len(b.Nodes)
	for i := range n {
		id := fmt.Sprintf("%s%04d", kind, i)
		b.Nodes = append(b.Nodes, NewNode(mad.NodeSwitch, id, id, ports, b.sw))
		b.sw++
	}
	return first
}

func (b *builder) join(a, portA, c, portC int) {
	b.Link(a, portA, c, portC, b.rate.Width, b.rate.Speed)
}

// Star generates hosts channel adapters with one port each around one switch. The error is a
// *ParameterError.
func Star(hosts int, r Rate) (*Topology, error) {
	if err := within("hosts", hosts, 1, MaxNodePorts); err != nil {
		return nil, err
	}
	return StarOf(slices.Repeat([]Host{{Ports: 1, Linked: []int{1}}}, hosts), r)
}

// Host is a channel adapter of a star: how many ports it has, and which of them have a link.
type Host struct {
	Ports  int
	Linked []int
}

// StarOf generates channel adapters around one switch, whose ports are linked to theirs in order. The error
// is a *ParameterError.
func StarOf(hosts []Host, r Rate) (*Topology, error) {
	links := 0
	for _, h := range hosts {
		links += len(h.Linked)
	}
	if err := within("links", links, 1, MaxNodePorts); err != nil {
		return nil, err
	}
	b := newBuilder(r)
	for _, h := range hosts {
		b.adapters(1, h.Ports)
	}
	sw, next := b.add("switch", 1, links), 1
	for i, h := range hosts {
		for _, port := range h.Linked {
			b.join(i, port, sw, next)
			next++
		}
	}
	return &b.Topology, nil
}

// Torus generates a ring, torus or hypertorus of switches: sizes are the numbers of switches along each
// dimension; every switch has hosts channel adapters with one port. Ports 1 and 2 of a switch go up and
// down the first dimension, 3 and 4 the second, and so on; those of the hosts follow. Two switches along a
// dimension have one link. The error is a *ParameterError.
func Torus(sizes []int, hosts int, r Rate) (*Topology, error) {
	if err := within("number of dimensions", len(sizes), 1, 6); err != nil {
		return nil, err
	}
	switches := 1
	for _, n := range sizes {
		if err := within("size of a dimension", n, 2, 1024); err != nil {
			return nil, err
		}
		if switches *= n; switches > maxNodes {
			return nil, &ParameterError{"number of switches", switches, fmt.Sprintf("at most %d", maxNodes)}
		}
	}
	radix := 2*len(sizes) + hosts
	if err := within("hosts at a switch", hosts, 0, MaxNodePorts-2*len(sizes)); err != nil {
		return nil, err
	}
	b := newBuilder(r)
	if err := b.check(switches*hosts, 1, switches, radix); err != nil {
		return nil, err
	}
	b.adapters(switches*hosts, 1)
	first := b.add("switch", switches, radix)
	for s := range switches {
		stride := 1
		for d, n := range sizes {
			at := s / stride % n
			if next := s - at*stride + (at+1)%n*stride; n > 2 || at == 0 {
				b.join(first+s, 2*d+1, first+next, 2*d+2)
			}
			stride *= n
		}
		for h := range hosts {
			b.join(s*hosts+h, 1, first+s, 2*len(sizes)+h+1)
		}
	}
	return &b.Topology, nil
}

// Dragonfly generates groups of fully connected switches, with a link between every two groups. A switch
// has hosts channel adapters with one port each and global links to other groups, so there can be at most
// switches times global plus one groups. The error is a *ParameterError.
func Dragonfly(groups, switches, hosts, global int, r Rate) (*Topology, error) {
	if err := within("switches of a group", switches, 1, MaxNodePorts); err != nil {
		return nil, err
	}
	if err := within("hosts at a switch", hosts, 0, MaxNodePorts-switches); err != nil {
		return nil, err
	}
	if err := within("global links of a switch", global, 0, MaxNodePorts-switches+1-hosts); err != nil {
		return nil, err
	}
	if err := within("groups", groups, 1, switches*global+1); err != nil {
		return nil, err
	}
	radix := max(hosts+switches-1+global, 1)
	b := newBuilder(r)
	if err := b.check(groups*switches*hosts, 1, groups*switches, radix); err != nil {
		return nil, err
	}
	b.adapters(groups*switches*hosts, 1)
	first := b.add("switch", groups*switches, radix)
	for s := range groups * switches {
		for h := range hosts {
			b.join(s*hosts+h, 1, first+s, h+1)
		}
		for o := s%switches + 1; o < switches; o++ { // from port hosts+1 on: the others of the group in order
			b.join(first+s, hosts+o, first+s-s%switches+o, hosts+s%switches+1)
		}
	}
	// Group g reaches group g+1+k by its global link k, counted over all its switches.
	for g := range groups {
		for o := g + 1; o < groups; o++ {
			there, back := o-g-1, groups-1-(o-g)
			b.join(first+g*switches+there/global, hosts+switches+there%global,
				first+o*switches+back/global, hosts+switches+back%global)
		}
	}
	return &b.Topology, nil
}

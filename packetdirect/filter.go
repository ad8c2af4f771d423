package packetdirect

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"

	"github.com/softvpi/softvpi/verbs"
	"github.com/softvpi/softvpi/wire/eth"
)

// Kind is what a filter takes.
type Kind uint8

// The kinds of filters.
const (
	// Match takes frames with all the fields that the filter gives.
	Match Kind = iota
	// Rest takes frames that nothing else at the port takes, no host either.
	Rest
	// RestOfGroups takes those of them that are to groups.
	RestOfGroups
	// Copies gives the queue a copy of every frame that the port receives or sends, RDMA's too, and takes none.
	Copies
)

// Filter says which frames a receive queue gets (PDSetReceiveFilter). Fields that are zero match every frame. Only filters of kind
// Match have any; a filter without any takes all frames that reach the port, but RoCE for the adapter itself.
type Filter struct {
	Kind Kind
	// Priority orders filters: the smallest that matches takes the frame, and all queues with filters of that priority that
	// match get it.
	Priority uint16

	Dst, Src  [6]byte // MACs
	VLAN      uint16  // identifier in the first tag, 1 to 4094
	EtherType uint16  // behind tags
	// SrcNet and DstNet are networks of IPv4 or IPv6 addresses, both of one family.
	SrcNet, DstNet netip.Prefix
	// Protocol is of IPv4, or IPv6's next header: 6 TCP, 17 UDP and so on.
	Protocol uint8
	// SrcPort and DstPort are of TCP or UDP; Protocol says which.
	SrcPort, DstPort uint16
}

// Steering is a filter of a queue, or of a Spread.
type Steering struct {
	flows []*verbs.Flow
	of    *filters
}

// filters are those of a queue, or of a Spread.
type filters struct {
	mu     sync.Mutex
	closed bool
	list   map[*Steering]bool
}

// AddFilter makes the queue get frames. A filter that says neither family nor EtherType but Protocol stands for both IPv4
// and IPv6. The errors are verbs.ErrInvalid naming the field, and verbs.ErrExhausted: an adapter has 256 rules at most.
func (q *ReceiveQueue) AddFilter(f Filter) (*Steering, error) {
	return q.filters.add(f, q.qp.CreateFlow)
}

func (l *filters) add(f Filter, create func(verbs.FlowConfig) (*verbs.Flow, error)) (*Steering, error) {
	rules, err := f.rules()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, failed("add filter", verbs.ErrClosed, "")
	}
	s := &Steering{of: l}
	for i := range rules {
		flow, err := create(rules[i])
		if err != nil {
			_ = s.remove()
			return nil, err
		}
		s.flows = append(s.flows, flow)
	}
	if l.list == nil {
		l.list = map[*Steering]bool{}
	}
	l.list[s] = true
	return s, nil
}

// end ends the filters, and allows no more.
func (l *filters) end() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.list {
		if err := s.remove(); err != nil {
			return err
		}
		delete(l.list, s)
	}
	l.closed = true
	return nil
}

// FilterCounters count the frames of a filter: those that its queue has got, and those that found no buffer there, or one that was
// too short.
type FilterCounters struct {
	Frames, Bytes, Lost uint64
}

// Counters returns what the filter has counted so far. It is a call of the driver.
func (s *Steering) Counters() (FilterCounters, error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	var sum FilterCounters
	for _, f := range s.flows {
		c, err := f.Counters()
		if err != nil {
			return FilterCounters{}, err
		}
		sum.Frames += c.Frames
		sum.Bytes += c.Bytes
		sum.Lost += c.Lost
	}
	return sum, nil
}

// Remove ends the filter (PDClearReceiveFilter). Removing twice is harmless.
func (s *Steering) Remove() error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	delete(s.of.list, s)
	return s.remove()
}

func (s *Steering) remove() error {
	for len(s.flows) > 0 {
		last := len(s.flows) - 1
		if err := s.flows[last].Close(); err != nil {
			return err
		}
		s.flows = s.flows[:last]
	}
	return nil
}

// rules returns the filter as flows of verbs: two if it is for both IPv4 and IPv6.
func (f *Filter) rules() ([]verbs.FlowConfig, error) {
	if f.Kind != Match {
		types := map[Kind]verbs.FlowType{Rest: verbs.FlowAllDefault, RestOfGroups: verbs.FlowMulticastDefault, Copies: verbs.FlowSniffer}
		t, ok := types[f.Kind]
		if !ok {
			return nil, wrong("Kind", f.Kind, "Match, Rest, RestOfGroups or Copies")
		}
		if *f != (Filter{Kind: f.Kind}) {
			return nil, wrong("Kind", f.Kind, "Match, with other fields")
		}
		return []verbs.FlowConfig{{Type: t}}, nil
	}
	c := verbs.FlowConfig{Priority: f.Priority, Layers: verbs.FlowEthernet}
	f.ethernet(&c)
	families, err := f.families()
	if err != nil {
		return nil, err
	}
	if err := f.ports(&c); err != nil {
		return nil, err
	}
	rules := []verbs.FlowConfig{}
	for _, family := range families {
		r := c
		r.Layers |= family
		rules = append(rules, r)
	}
	return rules, nil
}

func (f *Filter) ethernet(c *verbs.FlowConfig) {
	v, m := &c.Value, &c.Mask
	all := [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	if f.Dst != [6]byte{} {
		v.Dst, m.Dst = f.Dst, all
	}
	if f.Src != [6]byte{} {
		v.Src, m.Src = f.Src, all
	}
	if f.VLAN != 0 {
		v.VLAN, m.VLAN = f.VLAN, 0xfff
	}
	if f.EtherType != 0 {
		v.EtherType, m.EtherType = f.EtherType, 0xffff
	}
}

// families returns the layers of the network for which there is a rule each: 0 is any.
func (f *Filter) families() ([]verbs.FlowLayers, error) {
	if f.VLAN > 4094 {
		return nil, wrong("VLAN", f.VLAN, "1 to 4094, or 0 for any")
	}
	ipv4, ipv6 := false, false
	for _, p := range []netip.Prefix{f.SrcNet, f.DstNet} {
		ipv4 = ipv4 || p.IsValid() && p.Addr().Is4()
		ipv6 = ipv6 || p.IsValid() && p.Addr().Is6()
	}
	wants := ipv4 || ipv6 || f.Protocol != 0
	t := eth.EtherType(f.EtherType)
	other := t != 0 && (t != eth.TypeIPv4 && t != eth.TypeIPv6 || ipv4 && t == eth.TypeIPv6 || ipv6 && t == eth.TypeIPv4)
	switch {
	case ipv4 && ipv6:
		return nil, wrong("SrcNet", f.SrcNet, fmt.Sprintf("a network of the family of DstNet, %v", f.DstNet))
	case wants && other:
		return nil, wrong("EtherType", fmt.Sprintf("%#04x", f.EtherType), "that of SrcNet, DstNet or Protocol, or 0")
	case ipv4 || wants && t == eth.TypeIPv4:
		return []verbs.FlowLayers{verbs.FlowIPv4}, nil
	case ipv6 || wants && t == eth.TypeIPv6:
		return []verbs.FlowLayers{verbs.FlowIPv6}, nil
	case wants:
		return []verbs.FlowLayers{verbs.FlowIPv4, verbs.FlowIPv6}, nil
	}
	return []verbs.FlowLayers{0}, nil
}

// ports sets what filters say of addresses, protocol and ports.
func (f *Filter) ports(c *verbs.FlowConfig) error {
	v, m := &c.Value, &c.Mask
	network(f.SrcNet, &v.SrcAddr, &m.SrcAddr)
	network(f.DstNet, &v.DstAddr, &m.DstAddr)
	if f.Protocol != 0 {
		v.Protocol, m.Protocol = f.Protocol, 0xff
	}
	if f.SrcPort == 0 && f.DstPort == 0 {
		return nil
	}
	switch f.Protocol {
	case eth.ProtocolTCP:
		c.Layers |= verbs.FlowTCP
	case eth.ProtocolUDP:
		c.Layers |= verbs.FlowUDP
	default:
		return wrong("Protocol", f.Protocol, "6 (TCP) or 17 (UDP), with SrcPort or DstPort")
	}
	if f.SrcPort != 0 {
		v.SrcPort, m.SrcPort = f.SrcPort, 0xffff
	}
	if f.DstPort != 0 {
		v.DstPort, m.DstPort = f.DstPort, 0xffff
	}
	return nil
}

// network writes the bits of a network. Addresses of IPv4 are the first four bytes of value.
func network(p netip.Prefix, value, mask *[16]byte) {
	if !p.IsValid() {
		return
	}
	copy(value[:], p.Masked().Addr().AsSlice())
	var high, low uint64
	if n := p.Bits(); n <= 64 {
		high = ^uint64(0) << (64 - n)
	} else {
		high, low = ^uint64(0), ^uint64(0)<<(128-n)
	}
	binary.BigEndian.PutUint64(mask[:], high)
	binary.BigEndian.PutUint64(mask[8:], low)
}

func wrong(field string, value any, want string) error {
	return failed("add filter", verbs.ErrInvalid, "%s is %v, want %s", field, value, want)
}

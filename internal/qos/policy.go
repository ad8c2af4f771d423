package qos

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/wire/eth"
)

// MostPolicies is how many policies an adapter has at most.
const MostPolicies = 64

// Policy gives traffic a priority, or RDMA traffic a DSCP (New-NetQosPolicy). It is for RDMA connections of a port, for TCP, UDP or
// both to ports and addresses, or for everything that no other matches.
type Policy struct {
	Name string
	// NetDirect is the port of RDMA connections (-NetDirectPortMatchCondition); 0: the policy is not for one.
	NetDirect uint16
	// Default policies are for what no other matches (-Default).
	Default bool
	// Protocol is eth.ProtocolTCP or UDP; 0: both (-IPProtocolMatchCondition).
	Protocol uint8
	// First and Last are destination ports (-IPDstPortStartMatchCondition, -IPDstPortEndMatchCondition); both 0: any.
	First, Last uint16
	// To are the destinations (-IPDstPrefixMatchCondition); invalid: any.
	To netip.Prefix
	// Priority (-PriorityValue8021Action) and DSCP (-DSCPAction) of the traffic; -1: the policy leaves it.
	Priority, DSCP int8
}

// Words of a policy.
const (
	policyNetDirect = "netdirect"
	policyDefault   = "default"
	policyProtocol  = "protocol"
	policyPort      = "port"
	policyTo        = "to"
	policyPriority  = "priority"
	policyDSCP      = "dscp"
	policyWords     = "netdirect=PORT, default, protocol=tcp|udp, port=FIRST-LAST, to=PREFIX, priority=0..7, dscp=0..63"
)

// ParsePolicy reads a policy: "netdirect=445,priority=3", "protocol=tcp,port=31000-31999,priority=1" or "default,priority=3".
func ParsePolicy(name, text string) (Policy, error) {
	p := Policy{Name: name, Priority: -1, DSCP: -1}
	if name == "" || strings.ContainsAny(name, "=,\n") || len(name) > 64 {
		return p, bad("name of a policy", fmt.Sprintf("%q", name), "1 to 64 characters without = and commas")
	}
	for w := range strings.SplitSeq(text, ",") {
		word, value, _ := strings.Cut(w, "=")
		if !p.set(word, value) {
			return p, bad("policy", fmt.Sprintf("%q", w), policyWords)
		}
	}
	flow := p.Protocol != 0 || p.Last != 0 || p.To.IsValid()
	switch n := len(slices.DeleteFunc([]bool{p.NetDirect != 0, p.Default, flow}, func(b bool) bool { return !b })); {
	case n != 1:
		return p, bad("policy", fmt.Sprintf("%q", text), "netdirect, default, or one or more of protocol, port and to")
	case p.Priority < 0 && p.DSCP < 0:
		return p, bad("policy", fmt.Sprintf("%q", text), "priority or dscp, which say what it does")
	}
	return p, nil
}

// set sets what a word says; false: there is no such word, or it cannot have that value.
func (p *Policy) set(word, value string) bool {
	number := func(most uint64) (uint64, bool) {
		n, err := strconv.ParseUint(value, 10, 16)
		return n, err == nil && n <= most
	}
	switch word {
	case policyDefault:
		p.Default = true
		return value == ""
	case policyNetDirect:
		n, ok := number(1<<16 - 1)
		p.NetDirect = uint16(n)
		return ok && n != 0
	case policyProtocol:
		p.Protocol = map[string]uint8{"tcp": eth.ProtocolTCP, "udp": eth.ProtocolUDP}[value]
		return p.Protocol != 0
	case policyPort:
		first, last, ranges := strings.Cut(value, "-")
		if !ranges {
			last = first
		}
		f, err := strconv.ParseUint(first, 10, 16)
		l, err2 := strconv.ParseUint(last, 10, 16)
		p.First, p.Last = uint16(f), uint16(l)
		return err == nil && err2 == nil && f > 0 && f <= l
	case policyTo:
		x, err := netip.ParsePrefix(value)
		p.To = x.Masked()
		return err == nil
	case policyPriority:
		n, ok := number(Priorities - 1)
		p.Priority = int8(n)
		return ok
	case policyDSCP:
		n, ok := number(63)
		p.DSCP = int8(n)
		return ok
	}
	return false
}

// String returns a policy as ParsePolicy reads it.
func (p Policy) String() string {
	var words []string
	add := func(set bool, format string, values ...any) {
		if set {
			words = append(words, fmt.Sprintf(format, values...))
		}
	}
	add(p.Default, policyDefault)
	add(p.NetDirect != 0, policyNetDirect+"=%d", p.NetDirect)
	add(p.Protocol != 0, policyProtocol+"=%s", map[uint8]string{eth.ProtocolTCP: "tcp", eth.ProtocolUDP: "udp"}[p.Protocol])
	add(p.Last != 0 && p.First == p.Last, policyPort+"=%d", p.First)
	add(p.First != p.Last, policyPort+"=%d-%d", p.First, p.Last)
	add(p.To.IsValid(), policyTo+"=%v", p.To)
	add(p.Priority >= 0, policyPriority+"=%d", p.Priority)
	add(p.DSCP >= 0, policyDSCP+"=%d", p.DSCP)
	return strings.Join(words, ",")
}

// weight is how much of a flow a policy names: of several that match, the heaviest is the longest match. The address comes before
// the ports, and they before the protocol; fewer ports come before more.
func (p *Policy) weight() int {
	w := 1
	if p.Default {
		return 0
	}
	if p.To.IsValid() {
		w += (p.To.Bits() + 1) << 18
	}
	if p.Last != 0 {
		w += (1<<16 - int(p.Last-p.First)) << 1
	}
	if p.Protocol != 0 {
		w++
	}
	return w
}

// Policies are in the order in which they are looked at: the longest match first.
type Policies []Policy

// Order puts policies into their order; of those that name as much, the names decide.
func (l Policies) Order() {
	slices.SortFunc(l, func(a, b Policy) int {
		if d := b.weight() - a.weight(); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// NetDirect returns the policy that is for RDMA connections of a port; nil: there is none.
func (l Policies) NetDirect(port uint16) *Policy {
	for i := range l {
		if port != 0 && l[i].NetDirect == port {
			return &l[i]
		}
	}
	return nil
}

// RDMA returns the policy of an RDMA connection of a port, or of RDMA traffic without one (0); nil: there is none.
func (l Policies) RDMA(port uint16) *Policy {
	if p := l.NetDirect(port); p != nil {
		return p
	}
	for i := range l {
		if l[i].Default {
			return &l[i]
		}
	}
	return nil
}

// Flow returns the policy of a packet of TCP, UDP or something else to an address and a port; nil: there is none.
func (l Policies) Flow(protocol uint8, to netip.Addr, port uint16) *Policy {
	for i := range l {
		p := &l[i]
		if p.NetDirect != 0 {
			continue
		}
		transport := protocol == eth.ProtocolTCP || protocol == eth.ProtocolUDP
		switch {
		case p.Protocol != 0 && p.Protocol != protocol:
		case p.Last != 0 && (!transport || port < p.First || port > p.Last):
		case p.To.IsValid() && !p.To.Contains(to):
		default:
			return p
		}
	}
	return nil
}

package qos

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
)

func policies(t *testing.T, texts ...string) (l Policies) {
	t.Helper()
	for i, text := range texts {
		p, err := ParsePolicy(string(rune('a'+i)), text)
		if err != nil || p.String() != text {
			t.Fatalf("%q: %q, %v", text, p, err)
		}
		l = append(l, p)
	}
	l.Order()
	return l
}

// TestParsePolicy: a policy is for one kind of traffic, and does something.
func TestParsePolicy(t *testing.T) {
	for _, text := range []string{
		"", "priority=3", "netdirect=445", "netdirect=0,priority=3", "netdirect=445,default,priority=1", "netdirect=445,protocol=tcp,priority=1",
		"default,priority=8", "default,dscp=64", "protocol=icmp,priority=1", "port=5-4,priority=1", "port=0,priority=1", "to=10.0.0.1,priority=1",
		"default=1,priority=1", "colour=red", "port=70000,priority=1",
	} {
		if _, err := ParsePolicy("x", text); field(err) != "policy" {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := ParsePolicy("a=b", "default,priority=1"); field(err) != "name of a policy" {
		t.Error(err)
	}
}

// TestPolicies_LongestMatch: the policy that names most of a flow decides (the manual's example of DSCP for ETS); RDMA goes by the port of
// its connection, else by the default.
func TestPolicies_LongestMatch(t *testing.T) {
	l := policies(t, "default,priority=1", "protocol=tcp,priority=2", "protocol=tcp,port=31000-31999,priority=3", "protocol=tcp,port=31500,priority=4",
		"to=10.0.0.0/8,priority=5", "to=10.1.0.0/16,priority=6", "netdirect=445,priority=7", "protocol=udp,to=fd00::/64,dscp=9")
	for _, x := range []struct {
		protocol uint8
		to       string
		port     uint16
		want     int8
	}{
		{eth.ProtocolTCP, "192.0.2.1", 80, 2}, {eth.ProtocolTCP, "192.0.2.1", 31000, 3}, {eth.ProtocolTCP, "192.0.2.1", 31500, 4},
		{eth.ProtocolUDP, "192.0.2.1", 31500, 1}, {eth.ProtocolTCP, "10.2.0.1", 31500, 5}, {eth.ProtocolTCP, "10.1.2.3", 80, 6},
		{eth.ProtocolTCP, "192.0.2.1", 445, 2}, {1, "192.0.2.1", 0, 1}, {1, "10.1.2.3", 0, 6},
	} {
		if p := l.Flow(x.protocol, netip.MustParseAddr(x.to), x.port); p == nil || p.Priority != x.want {
			t.Errorf("%+v: %v", x, p)
		}
	}
	if p := l.RDMA(445); p.Priority != 7 {
		t.Errorf("port 445: %v", p)
	}
	if p, none := l.RDMA(446), l[:1].RDMA(446); p.Priority != 1 || none != nil {
		t.Errorf("port 446: %v, %v", p, none)
	}
}

// TestMarking_RDMA: what a program chooses comes first, then policies, then what DCBX says of RoCE, then the default; a tag is due for a
// priority that somebody has named, and DSCPs follow priorities where no program has chosen one.
func TestMarking_RDMA(t *testing.T) {
	v2, v1 := RoCE{Port: 4791}, RoCE{V1: true}
	rules := policies(t, "default,priority=1", "netdirect=445,priority=3,dscp=20")
	apps := []Application{{EtherType, 0x8915, 5}, {Port, 4791, 4}, {DSCP, 46, 6}}
	table := [8]uint8{0, 8, 16, 24, 32, 40, 48, 56}
	for _, x := range []struct {
		name      string
		m         Marking
		kind      RoCE
		port      uint16
		sl, class uint8
		vlan      bool
		want      Mark
	}{
		{"nothing", Marking{}, v2, 445, 0, 0, false, Mark{}},
		{"nothing chosen", Marking{Tags: true}, v2, 445, 0, 0, false, Mark{}},
		{"the default", Marking{Tags: true, Default: 2}, v2, 445, 0, 1, false, Mark{Priority: 2, Class: 1}},
		{"a service level", Marking{Tags: true, Policies: rules}, v2, 445, 6, 0, false, Mark{Priority: 6, Class: 20 << 2, Tagged: true}},
		{"a service level without a tag", Marking{Tags: true, Bare: true}, v2, 0, 6, 0, false, Mark{Priority: 6}},
		{"in a VLAN", Marking{Tags: true, Bare: true}, v2, 0, 6, 0, true, Mark{Priority: 6, Tagged: true}},
		{"a policy of the port", Marking{Policies: rules, Applications: apps}, v2, 445, 0, 2, false, Mark{Priority: 3, Class: 20<<2 | 2}},
		{"the default policy", Marking{Policies: rules, Applications: apps}, v2, 446, 0, 0, false, Mark{Priority: 1}},
		{"RoCE v2 as an application", Marking{Applications: apps}, v2, 446, 0, 0, false, Mark{Priority: 4}},
		{"RoCE v1 as an application", Marking{Applications: apps}, v1, 446, 0, 0, false, Mark{Priority: 5}},
		{"a DSCP as an application", Marking{Applications: apps}, v2, 446, 0, 46 << 2, false, Mark{Priority: 6, Class: 46 << 2}},
		{"a traffic class", Marking{ByDSCP: true, Policies: rules}, v2, 445, 0, 26 << 2, false, Mark{Priority: 3, Class: 26 << 2}},
		{"a VLAN interface", Marking{Own: 5, Default: 2, Bare: true}, v2, 446, 0, 0, true, Mark{Priority: 5, Tagged: true}},
		{"a service level on a VLAN interface", Marking{Own: 5, Tags: true}, v2, 0, 3, 0, true, Mark{Priority: 3, Tagged: true}},
		{"a policy on a VLAN interface", Marking{Own: 5, Tags: true, Policies: rules}, v2, 445, 0, 0, true, Mark{Priority: 3, Class: 20 << 2, Tagged: true}},
		{"marks of a VLAN interface", Marking{Own: 5, Marks: true, Table: table}, v2, 0, 0, 0, true, Mark{Priority: 5, Class: 40 << 2, Tagged: true}},
		{"marks", Marking{Marks: true, Table: table}, v2, 0, 3, 1, false, Mark{Priority: 3, Class: 24<<2 | 1}},
		{"global pause", Marking{Marks: true, Whole: true, Global: 26, Table: table}, v2, 0, 3, 1, false, Mark{Priority: 3, Class: 26<<2 | 1}},
		{"PFC, not global pause", Marking{Marks: true, Whole: true, Paused: true, Global: 26, Table: table}, v2, 0, 3, 0, false,
			Mark{Priority: 3, Class: 24 << 2}},
		{"global pause of WinOF", Marking{MarksPaused: true, Whole: true, Global: 26}, v2, 0, 3, 0, false, Mark{Priority: 3, Class: 26 << 2}},
		{"no pause of WinOF", Marking{MarksPaused: true, Global: 26, Table: table}, v2, 0, 3, 0, false, Mark{Priority: 3}},
		{"a program's DSCP stays", Marking{Marks: true, Table: table}, v2, 0, 3, 40, false, Mark{Priority: 3, Class: 40}},
	} {
		if got := x.m.RDMA(x.kind, x.port, x.sl, x.class, x.vlan); got != x.want {
			t.Errorf("%s: %+v, want %+v", x.name, got, x.want)
		}
	}
}

package hostside

import (
	"bufio"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/function/ethernet/filter"
	"github.com/softvpi/softvpi/wire/eth"
)

// interfaceEnd is an end in memory whose interface has a list of groups.
type interfaceEnd struct {
	*end
	news     *Groups
	asked    uint64
	followed bool
}

func (e *interfaceEnd) Follow()      { e.followed = true }
func (e *interfaceEnd) Unfollow()    { e.followed = false }
func (e *interfaceEnd) Look() uint64 { e.asked++; return e.asked }

func (e *interfaceEnd) News() *Groups {
	g := e.news
	e.news = nil
	return g
}

// frameOfGroup is a frame of IP with a packet behind its header.
func frameOfGroup(src, dst eth.MAC, t eth.EtherType, packet []byte) []byte {
	h := eth.Ethernet{Dst: dst, Src: src, Type: t}
	return append(h.Append(nil), packet...)
}

// TestSide_Groups: once the host's list of groups is known frames to those groups pass alone, and to the groups of everybody;
// from a report of the host until the list has been read again frames to all do, as with an interface that wants them, and with more
// than MaxNumOfMCList groups, which is an event (WinOF 5.50, 4.6.3).
func TestSide_Groups(t *testing.T) {
	var raised []ethernet.Event
	b := newBed(t, false, func(c *ethernet.Config) { c.MaxNumOfMCList = 64 })
	e := &interfaceEnd{end: b.ends[0]}
	s := b.side[0]
	s.end, s.raised = e, func(x ethernet.Event) { raised = append(raised, x) }
	if err := s.Attach(s.f); err != nil || !e.followed {
		t.Fatal("the list is not followed", err)
	}
	s.f.Filter().SetMode(filter.Usual | filter.AllMulticast)
	ours, other := eth.MAC{0x01, 0, 0x5e, 1, 2, 3}, eth.MAC{0x01, 0, 0x5e, 9, 9, 9}
	many := make([]eth.MAC, 63) // and those of everybody
	for i := range many {
		many[i] = eth.MAC{0x33, 0x33, 0, 0, 1, byte(i)}
	}
	igmp := frameOfGroup(macA, eth.MAC{0x01, 0, 0x5e, 0, 0, 22}, eth.TypeIPv4, eth.AppendIGMPPacket(nil, netip.MustParseAddr("10.0.0.1"),
		netip.MustParseAddr("224.0.0.22"), eth.AppendIGMPv3Report(nil, nil)))
	from, to := netip.MustParseAddr("fe80::1"), netip.MustParseAddr("ff02::16")
	mld := frameOfGroup(macA, eth.MAC{0x33, 0x33, 0, 0, 0, 0x16}, eth.TypeIPv6, eth.AppendMLDPacket(nil, from, to,
		eth.AppendMLDv2Report(nil, from, to, nil)))
	for _, x := range []struct {
		name   string
		do     func()
		passes []eth.MAC
		drops  []eth.MAC
	}{
		{"nothing known", func() {}, []eth.MAC{ours, other}, nil},
		{"a list", func() { e.news = &Groups{List: []eth.MAC{ours}} }, append([]eth.MAC{ours}, everybody...), []eth.MAC{other}},
		{"the host reports by IGMP", func() { e.send = append(e.send, igmp) }, []eth.MAC{ours, other}, nil},
		{"a list read before", func() { e.news = &Groups{List: []eth.MAC{ours}} }, []eth.MAC{ours, other}, nil},
		{"the list after", func() { e.news = &Groups{List: []eth.MAC{other}, Asked: 1} }, []eth.MAC{other}, []eth.MAC{ours}},
		{"the host reports by MLD", func() { e.send = append(e.send, mld) }, []eth.MAC{ours, other}, nil},
		{"in a bridge", func() { e.news = &Groups{All: true, Asked: 2} }, []eth.MAC{ours, other}, nil},
		{"another list", func() { e.news = &Groups{List: []eth.MAC{ours}, Asked: 2} }, []eth.MAC{ours}, []eth.MAC{other}},
		{"more than are filtered", func() { e.news = &Groups{List: many, Asked: 2} }, []eth.MAC{ours, other}, nil},
		{"fewer again", func() { e.news = &Groups{List: many[:62], Asked: 2} }, []eth.MAC{many[0]}, []eth.MAC{ours, other}},
	} {
		x.do()
		b.run()
		for _, m := range append(slices.Clone(x.passes), x.drops...) {
			e.got = nil
			b.ends[1].send = [][]byte{frameOfGroup(macB, m, eth.TypeARP, make([]byte, 46))}
			b.run()
			if got := len(e.got) == 1; got == slices.Contains(x.drops, m) {
				t.Errorf("%s: a frame to %v passes: %t", x.name, m, got)
			}
		}
	}
	if len(raised) != 1 || raised[0].Kind != ethernet.ManyGroups || raised[0].Count != 65 {
		t.Errorf("events %+v", raised)
	}
	if s.Detach(); e.followed {
		t.Error("the list is still followed")
	}
}

// TestReports: what is not a report to a group is none, however short.
func TestReports(t *testing.T) {
	igmp := frameOfGroup(macA, eth.MAC{0x01, 0, 0x5e, 0, 0, 22}, eth.TypeIPv4, eth.AppendIGMPPacket(nil, netip.MustParseAddr("10.0.0.1"),
		netip.MustParseAddr("224.0.0.22"), eth.AppendIGMPv3Report(nil, nil)))
	if !reports(igmp) {
		t.Error("IGMP is no report")
	}
	for n := range eth.EthernetLen + eth.IPv4Len {
		if reports(igmp[:n]) {
			t.Errorf("the first %d bytes are one", n)
		}
	}
	igmp[0] = 0
	if reports(igmp) {
		t.Error("one that is not to a group is")
	}
}

// TestParseGroups: the system's list has the addresses of all interfaces; those of one are wanted.
func TestParseGroups(t *testing.T) {
	list := "2    nic             1     0     333300000001\n3    eth0            2     0     01005e000001\n2    nic             1     0     01005e010203\n"
	got, err := parseGroups(bufio.NewScanner(strings.NewReader(list)), 2)
	if want := []eth.MAC{{0x33, 0x33, 5: 1}, {0x01, 0, 0x5e, 1, 2, 3}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"2 nic 1 0\n", "2 nic 1 0 33330000000z\n", "2 nic 1 0 3333\n"} {
		if _, err := parseGroups(bufio.NewScanner(strings.NewReader(bad)), 2); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

package packet

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

func routeMessage(typ uint8, attributes ...*nl.RtAttr) []byte {
	return request(unix.RTM_NEWROUTE, 0, &nl.RtMsg{RtMsg: unix.RtMsg{Type: typ}}, attributes...).Serialize()[unix.SizeofNlMsghdr:]
}

func TestParseRoute(t *testing.T) {
	gateway := netip.MustParseAddr("192.0.2.254")
	by7 := nl.NewRtAttr(unix.RTA_OIF, nl.Uint32Attr(7))
	via := nl.NewRtAttr(unix.RTA_VIA, append(nl.Uint16Attr(unix.AF_INET6), v6a.AsSlice()...))
	for _, c := range []struct {
		name string
		body []byte
		want route
		ok   bool
	}{
		{"a neighbour", routeMessage(unix.RTN_UNICAST, by7), route{netip.Addr{}, 7, true}, true},
		{"behind a router", routeMessage(unix.RTN_UNICAST, by7, nl.NewRtAttr(unix.RTA_GATEWAY, gateway.AsSlice())), route{gateway, 7, true},
			true},
		{"behind a router of another family", routeMessage(unix.RTN_UNICAST, via, by7), route{v6a, 7, true}, true},
		{"this host", routeMessage(unix.RTN_LOCAL, nl.NewRtAttr(unix.RTA_OIF, nl.Uint32Attr(1))), route{netip.Addr{}, 1, false}, true},
		{"in a tunnel", routeMessage(unix.RTN_UNICAST, by7, nl.NewRtAttr(unix.RTA_ENCAP|unix.NLA_F_NESTED, nil)),
			route{netip.Addr{}, 7, false}, true},
		{"by no interface", routeMessage(unix.RTN_UNREACHABLE), route{}, false},
	} {
		if got, ok := parseRoute(c.body); got != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %v, want %+v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestParseNeighbour(t *testing.T) {
	mac := [6]byte{2, 0, 0, 0, 0, 9}
	message := func(state uint16, mac []byte) []byte {
		return request(unix.RTM_NEWNEIGH, 0, &netlink.Ndmsg{Index: 7, State: state},
			nl.NewRtAttr(netlink.NDA_DST, v4b.AsSlice()), nl.NewRtAttr(netlink.NDA_LLADDR, mac)).Serialize()[unix.SizeofNlMsghdr:]
	}
	for _, c := range []struct {
		name  string
		body  []byte
		gone  bool
		valid bool
	}{
		{"reachable", message(unix.NUD_REACHABLE, mac[:]), false, true},
		{"stale: used, and looked for", message(unix.NUD_STALE, mac[:]), false, true},
		{"permanent", message(unix.NUD_PERMANENT, mac[:]), false, true},
		{"looked for", message(unix.NUD_INCOMPLETE, nil), false, false},
		{"failed", message(unix.NUD_FAILED, mac[:]), false, false},
		{"removed", message(unix.NUD_REACHABLE, mac[:]), true, false},
		{"of another kind of address", message(unix.NUD_REACHABLE, make([]byte, 20)), false, false},
	} {
		n, ok := parseNeighbour(c.body, c.gone)
		if !ok || n.addr != v4b || n.out != 7 || n.valid != c.valid || c.valid && n.mac != mac {
			t.Errorf("%s: read as %+v, %v", c.name, n, ok)
		}
	}
}

// TestSystemAnswers: the kernel's routes, rules by port, neighbours and interfaces come back as they were set, and what
// it does not have as absent. Changes are told once, and there is no allocation where there are none.
func TestSystemAnswers(t *testing.T) {
	systemtest.Mark(t)
	s, lo := ownSystem(t)
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 7}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a", HardwareAddr: mac}, PeerName: "b"}); err != nil {
		t.Skipf("this system has no veth: %v", err)
	}
	var index [2]int
	for i, name := range []string{"a", "b"} {
		l, err := netlink.LinkByName(name)
		must(err)
		must(netlink.LinkSetUp(l))
		index[i] = l.Attrs().Index
	}
	a, err := netlink.LinkByIndex(index[0])
	must(err)
	address, err := netlink.ParseAddr(v4a.String() + "/24")
	must(err)
	must(netlink.AddrAdd(a, address))
	gateway, far := netip.MustParseAddr("192.0.2.254"), netip.MustParseAddr("198.51.100.1")
	must(netlink.RouteAdd(&netlink.Route{LinkIndex: index[0], Gw: gateway.AsSlice(), Dst: &net.IPNet{IP: far.AsSlice(),
		Mask: net.CIDRMask(32, 32)}}))
	must(netlink.NeighAdd(&netlink.Neigh{LinkIndex: index[0], IP: v4b.AsSlice(), HardwareAddr: mac, State: netlink.NUD_PERMANENT}))
	rule := netlink.NewRule()
	rule.Family, rule.Type, rule.Dport = unix.AF_INET, unix.RTN_UNREACHABLE, netlink.NewRulePortRange(4792, 4792)
	rule.IPProto = unix.IPPROTO_UDP
	must(netlink.RuleAdd(rule))

	for _, c := range []struct {
		name string
		dst  netip.Addr
		port uint16
		want route
		ok   bool
	}{
		{"a neighbour", v4b, 4791, route{netip.Addr{}, index[0], true}, true},
		{"behind a router", far, 4791, route{gateway, index[0], true}, true},
		{"this host", v4a, 4791, route{netip.Addr{}, lo, false}, true},
		{"to a port that a rule refuses", v4b, 4792, route{}, false},
		{"nowhere", netip.MustParseAddr("203.0.113.1"), 4791, route{}, false},
	} {
		if got, ok := s.route(v4a, c.dst, 0xc001, c.port, index[0]); got != c.want || ok != c.ok {
			t.Errorf("route to %s: %+v, %v, want %+v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
	want := neighbour{v4b, index[0], [6]byte(mac), true}
	if n, ok := s.neighbour(v4b, index[0]); !ok || n != want {
		t.Errorf("neighbour %+v, %v, want %+v", n, ok, want)
	}
	if n, ok := s.neighbour(gateway, index[0]); ok {
		t.Errorf("a neighbour that is not there: %+v", n)
	}
	for at, want := range map[int]device{index[0]: {ethernet, [6]byte(mac), false, 1500}, lo: {kind: loopback, mtu: 65536}} {
		if d, ok := s.device(at); !ok || d != want {
			t.Errorf("interface %d: %+v, %v, want %+v", at, d, ok, want)
		}
	}
	if d, ok := s.device(1 << 20); ok {
		t.Errorf("an interface that is not there: %+v", d)
	}

	var kinds []uint16
	follow := func(kind uint16, _ []byte) { kinds = append(kinds, kind) }
	for n := -1; n < len(kinds); { // one call reads a limited number
		n = len(kinds)
		s.changes(follow)
	}
	for _, kind := range []uint16{unix.RTM_NEWLINK, unix.RTM_NEWADDR, unix.RTM_NEWROUTE, unix.RTM_NEWNEIGH, unix.RTM_NEWRULE} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("no news of kind %d in %d", kind, kinds)
		}
	}
	must(netlink.RuleDel(rule))
	kinds = nil
	if !s.changes(follow) || !slices.Contains(kinds, unix.RTM_DELRULE) {
		t.Errorf("after a rule was removed: news %d", kinds)
	}
	if n := testing.AllocsPerRun(10, func() { s.changes(func(uint16, []byte) {}) }); n != 0 {
		t.Errorf("%v allocations to see that there are no changes", n)
	}
}

package cmdlets

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestSystem: addresses and routes come to a network interface of Linux, and go; what it has already, and an interface that there is
// not, are refused.
func TestSystem(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	l := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "nic0"}, PeerName: "peer0"}
	if err := netlink.LinkAdd(l); err != nil {
		t.Skipf("needs pairs of interfaces: %v", err)
	}
	peer, err := netlink.LinkByName("peer0")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(netlink.LinkSetUp(l), netlink.LinkSetUp(peer)); err != nil {
		t.Fatal(err)
	}
	var s System
	p, by := netip.MustParsePrefix("192.168.1.10/24"), netip.MustParseAddr("192.168.1.1")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.AddAddress("nic0", p))
	if err := s.AddAddress("nic0", p); err == nil || !strings.Contains(err.Error(), "it has that already") {
		t.Errorf("twice: %v", err)
	}
	x := Route{To: netip.MustParsePrefix("10.0.0.0/8"), By: by, Metric: 7}
	must(s.AddRoute("nic0", x))
	routes, err := s.Routes("nic0")
	must(err)
	if !slices.Contains(routes, x) {
		t.Errorf("routes: %v", routes)
	}
	must(s.RemoveRoute("nic0", x))
	must(s.RemoveAddress("nic0", p))
	addresses, err := s.Addresses("nic0")
	must(err)
	if slices.Contains(addresses, p) {
		t.Errorf("addresses: %v", addresses)
	}
	if err := s.AddAddress("nic9", p); err == nil || !strings.Contains(err.Error(), "network interface nic9") {
		t.Errorf("no interface: %v", err)
	}
}

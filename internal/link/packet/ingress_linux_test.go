package packet

import (
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// ownSystem puts the test into a network namespace of its own and returns a system to query it and the index of its
// loopback interface.
func ownSystem(t *testing.T) (s *system, lo int) {
	t.Helper()
	namespace.Own(t)
	s, err := openSystem()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	l, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	return s, l.Attrs().Index
}

// TestWhatLooksAtTheEntrance: of all that tc may have, only what is attached to the interface's own ingress counts.
// If the interface cannot be queried, it counts as having something.
func TestWhatLooksAtTheEntrance(t *testing.T) {
	systemtest.Mark(t)
	outside, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(outside)
	s, index := ownSystem(t)
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "other"}, PeerName: "peer"}); err != nil {
		t.Skipf("this system has no veth: %v", err)
	}
	other, err := netlink.LinkByName("other")
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, want bool) {
		t.Helper()
		if got := s.filtersIngress(index, s.socket(), 0); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	if s.filtersIngress(index, s.socket(), 0) && tcxPrograms(index, s.socket(), 0) {
		t.Skip("this system does not list programs")
	}
	check("nothing there", false)
	if !s.filtersIngress(index, outside, 0) {
		t.Error("a query from another namespace says that there is nothing")
	}
	clsact := func(of int) netlink.Qdisc {
		return &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: of, Handle: netlink.MakeHandle(0xffff, 0),
			Parent: netlink.HANDLE_CLSACT}}
	}
	if err := netlink.QdiscAdd(clsact(other.Attrs().Index)); err != nil {
		t.Skipf("not run to the end: this system has no clsact: %v", err)
	}
	check("at another interface", false)
	if err := netlink.QdiscAdd(clsact(index)); err != nil {
		t.Fatal(err)
	}
	check("at this one", true)
	p := &Port{cfg: Config{Interface: index}, system: s}
	s.changes(p.changed)
	if !p.late {
		t.Error("the Port did not notice the change")
	}
	if err := netlink.QdiscDel(clsact(index)); err != nil {
		t.Fatal(err)
	}
	check("gone again", false)
}

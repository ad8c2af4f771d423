package hostside

import (
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// opened opens a TAP in a namespace of the test's own.
func opened(t *testing.T) *tapEnd {
	t.Helper()
	namespace.Own(t)
	end, err := OpenTAP("nic")
	if err != nil {
		t.Skip("no TAP here: ", err)
	}
	t.Cleanup(func() {
		if err := end.Close(); err != nil {
			t.Error(err)
		}
	})
	return end.(*tapEnd)
}

// TestTAP_Moved: an interface that was moved to another network namespace, and renamed, gets its queues, address and MTU there,
// and none is made where it was.
func TestTAP_Moved(t *testing.T) {
	systemtest.Mark(t)
	e := opened(t)
	here, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	there, err := netns.New() // and goes there
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	elsewhere, err := netlink.NewHandle()
	if err == nil {
		err = netns.Set(here)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	i, err := netlink.LinkByName("nic")
	if err == nil {
		err = netlink.LinkSetNsFd(i, int(there))
	}
	if err == nil {
		err = elsewhere.LinkSetName(i, "other") // by its index, which it keeps in a namespace of two interfaces
	}
	if err != nil {
		t.Fatal(err)
	}
	mac := [6]byte{2, 0, 0, 0, 0, 7}
	for _, n := range []int{3, 1, 2} {
		if err := e.SetQueues(n); err != nil || e.Queues() != n {
			t.Fatalf("%d queues of %d: %v", e.Queues(), n, err)
		}
	}
	if err := e.Set(mac, 1400); err != nil {
		t.Fatal(err)
	}
	i, err = elsewhere.LinkByName("other")
	if err != nil || i.Attrs().MTU != 1400 || string(i.Attrs().HardwareAddr) != string(mac[:]) {
		t.Errorf("%+v, %v", i, err)
	}
	if all, err := netlink.LinkList(); err != nil || len(all) != 1 {
		t.Errorf("%d interfaces are where it was, want the loopback interface: %v", len(all), err)
	}
}

// TestTAP_DeletedUnread: an interface that is deleted while nobody reads from it is made again when it is needed.
func TestTAP_DeletedUnread(t *testing.T) {
	systemtest.Mark(t)
	e := opened(t)
	e.Pause(true)
	i, err := netlink.LinkByName("nic")
	if err == nil {
		err = netlink.LinkDel(i)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := e.SetQueues(2); err != nil || e.Queues() != 2 {
		t.Fatalf("%d queues: %v", e.Queues(), err)
	}
	e.Pause(false)
	if err := e.Set([6]byte{2, 0, 0, 0, 0, 7}, 1400); err != nil {
		t.Fatal(err)
	}
	if i, err := netlink.LinkByName("nic"); err != nil || i.Attrs().MTU != 1400 || i.Attrs().Alias != mark {
		t.Errorf("%+v, %v", i, err)
	}
}

package hostside

import (
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/wire/eth"
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

// TestTAP_Groups: the multicast addresses of the interface are followed, at once when somebody asks, in whatever network namespace
// it is; one that is promiscuous wants frames to all.
func TestTAP_Groups(t *testing.T) {
	systemtest.Mark(t)
	e := opened(t)
	if err := e.Set([6]byte{2, 0, 0, 0, 0, 7}, 1400); err != nil {
		t.Fatal(err)
	}
	i, err := netlink.LinkByName("nic")
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	member := func(change int, kind uint16) {
		t.Helper()
		m := &unix.PacketMreq{Ifindex: int32(i.Attrs().Index), Type: kind, Alen: 6, Address: [8]byte{0x01, 0, 0x5e, 1, 2, 3}}
		if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, change, m); err != nil {
			t.Fatal(err)
		}
	}
	e.Follow()
	last := &Groups{}
	expect := func(what string, in, all bool) {
		t.Helper()
		asked := e.Look()
		await.Eventually(t, what, func() bool {
			if g := e.News(); g != nil {
				last = g
			}
			return last.Asked >= asked && last.All == all && slices.Contains(last.List, eth.MAC{0x01, 0, 0x5e, 1, 2, 3}) == in
		})
	}
	expect("the first list", false, false)
	member(unix.PACKET_ADD_MEMBERSHIP, unix.PACKET_MR_MULTICAST)
	expect("a group more", true, false)
	member(unix.PACKET_ADD_MEMBERSHIP, unix.PACKET_MR_PROMISC)
	expect("promiscuous", true, true)
	member(unix.PACKET_DROP_MEMBERSHIP, unix.PACKET_MR_PROMISC)
	member(unix.PACKET_ADD_MEMBERSHIP, unix.PACKET_MR_ALLMULTI)
	expect("all groups", true, true)
	member(unix.PACKET_DROP_MEMBERSHIP, unix.PACKET_MR_ALLMULTI)
	member(unix.PACKET_DROP_MEMBERSHIP, unix.PACKET_MR_MULTICAST)
	expect("without it again", false, false)
	e.Unfollow()
	if e.News() != nil {
		t.Error("there are news of a list that is not followed")
	}
}

// TestTAP_GroupNews: a group that somebody joins on the interface is in its list as soon as the system tells of it, though the host
// reports nothing, and the list is not read by the clock.
func TestTAP_GroupNews(t *testing.T) {
	systemtest.Mark(t)
	e := opened(t)
	e.list.every = time.Hour
	e.SetLink(true)
	i, err := netlink.LinkByName("nic")
	if err == nil {
		err = netlink.LinkSetUp(i)
	}
	if err != nil {
		t.Fatal(err)
	}
	var told groupNews
	told.follow("here", make(chan struct{}, 1))
	if told.socket == nil {
		t.Skip("this system does not tell of groups")
	}
	told.end()
	e.Follow()
	defer e.Unfollow()
	group := eth.MAC{0x01, 0x00, 0x5e, 1, 2, 3}
	has := func() bool {
		g := e.News()
		return g != nil && slices.Contains(g.List, group)
	}
	await.Eventually(t, "the first list", func() bool { return e.News() != nil })
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP,
		&unix.IPMreqn{Multiaddr: [4]byte{239, 1, 2, 3}, Ifindex: int32(i.Attrs().Index)}); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "the group is in the list", has)
}

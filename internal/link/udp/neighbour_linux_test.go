package udp

import (
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestFramesFollowTheNeighbour: when the next hop gets another MAC address, frames use it as soon as the system does.
func TestFramesFollowTheNeighbour(t *testing.T) {
	systemtest.Mark(t)
	framePairs(t, func(t *testing.T, n *namespaces, l [2]Link, modes [2]packet.Mode) {
		if modes[0] == packet.Off {
			t.Skip("no frames are sent")
		}
		r := routeTo(t, l[0], l[1])
		arrives := func() bool {
			tend(l[0])
			sendAll(t, l[0], numbered(r, l[0].Capabilities(), 1, 8))
			return receiveSome(t, l[1]) > 0
		}
		await.Eventually(t, "a packet arrives", arrives)
		was := l[0].Stats().SentFrames
		n.in(1, func() error {
			b, err := netlink.LinkByName("b")
			if err != nil {
				return err
			}
			return netlink.LinkSetHardwareAddr(b, net.HardwareAddr{2, 0, 0, 0, 7, 7})
		})
		n.in(0, func() error { // as an announcement of the neighbour would
			a, err := netlink.LinkByName("a")
			if err != nil {
				return err
			}
			return netlink.NeighSet(&netlink.Neigh{LinkIndex: a.Attrs().Index, State: netlink.NUD_REACHABLE, IP: r.Dst.AsSlice(),
				HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 7, 7}})
		})
		await.Eventually(t, "a frame arrives at the neighbour's new address", func() bool {
			return arrives() && l[0].Stats().SentFrames > was+10
		})
	})
}

// TestFramesFollowTheRoute: a destination that the system reaches by another interface, or not at all, gets no
// frames. Nor does a former neighbour whose route now leads elsewhere.
func TestFramesFollowTheRoute(t *testing.T) {
	systemtest.Mark(t)
	n := newNamespaces(t, 1500)
	l := n.pairOf([2]Config{}, false)
	if s := l[0].Status().Frames; s != usesFrames {
		t.Skip(s)
	}
	self := &frame.Route{Dst: n.v4[0]} // by the loopback interface
	if err := l[0].Prepare(self); err != nil {
		t.Fatal(err)
	}
	sendAll(t, l[0], numbered(self, l[0].Capabilities(), 1, 8))
	receiveN(t, l[0], 1)
	if k := l[0].Stats().SentFrames; k > 2 { // those of the warm-up
		t.Fatalf("%d frames were sent to this host", k)
	}
	r := routeTo(t, l[0], l[1])
	send := func() uint64 {
		tend(l[0])
		before := l[0].Stats().SentFrames
		sendAll(t, l[0], numbered(r, l[0].Capabilities(), 1, 8))
		drain(t, l[1])
		return l[0].Stats().SentFrames - before
	}
	await.Eventually(t, "frames are sent to the neighbour", func() bool { return send() == 1 })
	blackhole := &netlink.Route{Dst: &net.IPNet{IP: r.Dst.AsSlice(), Mask: net.CIDRMask(32, 32)}, Type: unix.RTN_BLACKHOLE}
	n.in(0, func() error { return netlink.RouteAdd(blackhole) })
	await.Eventually(t, "no frames go where no route leads", func() bool { return send() == 0 })
	for range 5 {
		if send() != 0 {
			t.Fatal("a frame was sent to a destination without a route")
		}
	}
	n.in(0, func() error { return netlink.RouteDel(blackhole) })
	await.Eventually(t, "frames are sent after the route is back", func() bool { return send() == 1 })
}

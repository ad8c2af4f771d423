package packet_test

import (
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/linktest"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestFramesFollowTheNeighbour: when the next hop gets another MAC address, frames use it as soon as the system does.
func TestFramesFollowTheNeighbour(t *testing.T) {
	systemtest.Mark(t)
	for _, v6 := range []bool{false, true} {
		n := linktest.NewNamespaces(t, 9000)
		l := pairOf(n, v6)
		if s := l[0].Status().Frames; s != usesFrames {
			t.Skip(s)
		}
		r := routeTo(t, l[0], l[1])
		arrives := func() bool {
			linktest.Tend(l[0])
			linktest.SendAll(t, l[0], linktest.Numbered(r, l[0].Capabilities(), 1, 8))
			return linktest.ReceiveSome(t, l[1]) > 0
		}
		await.Eventually(t, "a packet arrives", arrives)
		was := l[0].Stats().SentFrames
		n.In(1, func() error {
			b, err := netlink.LinkByName("b")
			if err != nil {
				return err
			}
			return netlink.LinkSetHardwareAddr(b, net.HardwareAddr{2, 0, 0, 0, 7, 7})
		})
		n.In(0, func() error { // as an announcement of the neighbour would
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
	}
}

// TestFramesFollowTheRoute: a destination that the system reaches by another interface, or not at all, gets no
// frames. Nor does a former neighbour whose route now leads elsewhere.
func TestFramesFollowTheRoute(t *testing.T) {
	systemtest.Mark(t)
	n := linktest.NewNamespaces(t, 1500)
	l := pairOf(n, false)
	if s := l[0].Status().Frames; s != usesFrames {
		t.Skip(s)
	}
	self := &frame.Route{Dst: n.V4[0]} // by the loopback interface
	if err := l[0].Prepare(self); err != nil {
		t.Fatal(err)
	}
	linktest.SendAll(t, l[0], linktest.Numbered(self, l[0].Capabilities(), 1, 8))
	linktest.ReceiveN(t, l[0], 1)
	if k := l[0].Stats().SentFrames; k > 2 { // those of the warm-up
		t.Fatalf("%d frames were sent to this host", k)
	}
	r := routeTo(t, l[0], l[1])
	send := func() uint64 {
		linktest.Tend(l[0])
		before := l[0].Stats().SentFrames
		linktest.SendAll(t, l[0], linktest.Numbered(r, l[0].Capabilities(), 1, 8))
		linktest.Drain(t, l[1])
		return l[0].Stats().SentFrames - before
	}
	await.Eventually(t, "frames are sent to the neighbour", func() bool { return send() == 1 })
	blackhole := &netlink.Route{Dst: &net.IPNet{IP: r.Dst.AsSlice(), Mask: net.CIDRMask(32, 32)}, Type: unix.RTN_BLACKHOLE}
	n.In(0, func() error { return netlink.RouteAdd(blackhole) })
	await.Eventually(t, "no frames go where no route leads", func() bool { return send() == 0 })
	for range 5 {
		if send() != 0 {
			t.Fatal("a frame was sent to a destination without a route")
		}
	}
	n.In(0, func() error { return netlink.RouteDel(blackhole) })
	await.Eventually(t, "frames are sent after the route is back", func() bool { return send() == 1 })
}

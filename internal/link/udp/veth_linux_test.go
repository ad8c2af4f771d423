package udp

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

var sameAddr = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

func onVeth(t *testing.T, mtu int, test func(t *testing.T, ns *namespaces, v variant)) {
	for _, v := range []variant{
		{"bursts/v4", false, Config{}}, {"bursts/v6", true, Config{}},
		{"singly/v4", false, Config{NoSegmentation: true, NoCoalescing: true}},
		{"portable/v4", false, Config{Portable: true}}, {"portable/v6", true, Config{Portable: true}},
	} {
		t.Run(v.name, func(t *testing.T) { test(t, newNamespaces(t, mtu), v) })
	}
}

func TestVethCarriesPackets(t *testing.T) {
	systemtest.Mark(t)
	onVeth(t, 9000, func(t *testing.T, n *namespaces, v variant) {
		l := n.pair(v.cfg, v.v6)
		if s := l[0].Status(); s.Interface != "a" || s.MTU != 9000 || l[0].Capabilities().MTU != 9000 {
			t.Errorf("status: %+v", s)
		}
		for side := range l {
			frames := packets(routeTo(t, l[side], l[1-side]), l[side].Capabilities(), payloadsOf(40, 4096)...)
			sendAll(t, l[side], frames)
			for i, p := range receiveN(t, l[1-side], len(frames)) {
				if !bytes.Equal(p.Data, packetBytes(&frames[i])) {
					t.Fatalf("packet %d differs", i)
				}
			}
		}
	})
}

// TestVethPacketTooBig: packets too long for the interface cost only themselves, and are reported with the MTU it
// has.
func TestVethPacketTooBig(t *testing.T) {
	systemtest.Mark(t)
	onVeth(t, 1500, func(t *testing.T, n *namespaces, v variant) {
		l := n.pair(v.cfg, v.v6)
		r := routeTo(t, l[0], l[1])
		big := packets(r, l[0].Capabilities(), payloadsOf(10, 4096)...)
		sendAll(t, l[0], big)
		want := []link.Unreachable{{Dst: r.Dst, Kind: link.PacketTooBig, QPN: 0x2a, MTU: 1500}}
		out := make([]link.Unreachable, 8)
		k := l[0].Errors(out)
		if d := cmp.Diff(want, out[:min(k, 1)], sameAddr); d != "" {
			t.Error("(-want +got):\n", d)
		}
		if s := l[0].Stats(); s.SendErrors != 10 {
			t.Errorf("%d send errors for 10 packets", s.SendErrors)
		}
		sendAll(t, l[0], packets(r, l[0].Capabilities(), payloadsOf(10, 1024)...))
		receiveN(t, l[1], 10)
	})
}

// TestVethNoRoute: a destination without a route is reported, and later packets are sent.
func TestVethNoRoute(t *testing.T) {
	systemtest.Mark(t)
	onVeth(t, 1500, func(t *testing.T, n *namespaces, v variant) {
		l := n.pair(v.cfg, v.v6)
		far := &frame.Route{Dst: netip.MustParseAddr("192.0.2.1")}
		if v.v6 {
			far.Dst = netip.MustParseAddr("2001:db8::1")
		}
		if err := l[0].Prepare(far); err != nil {
			t.Fatal(err)
		}
		frames := append(packets(far, l[0].Capabilities(), payloadsOf(3, 100)...),
			packets(routeTo(t, l[0], l[1]), l[0].Capabilities(), payloadsOf(3, 100)...)...)
		sendAll(t, l[0], frames)
		receiveN(t, l[1], 3)
		out := make([]link.Unreachable, 8)
		k := l[0].Errors(out)
		if k == 0 || out[0] != (link.Unreachable{Dst: far.Dst, Kind: link.NetworkUnreachable, QPN: 0x2a}) {
			t.Errorf("errors: %+v", out[:k])
		}
	})
}

// TestVethHostUnreachable: a neighbour that does not answer is reported as an unreachable host.
func TestVethHostUnreachable(t *testing.T) {
	systemtest.Mark(t)
	onVeth(t, 1500, func(t *testing.T, n *namespaces, v variant) {
		if v.cfg.Portable {
			t.SkipNow() // it has no error queue
		}
		l := n.pair(v.cfg, v.v6)
		n.in(0, func() error {
			family := "ipv4"
			if v.v6 {
				family = "ipv6"
			}
			os.WriteFile("/proc/sys/net/"+family+"/neigh/a/mcast_solicit", []byte("1"), 0)
			return os.WriteFile("/proc/sys/net/"+family+"/neigh/a/retrans_time_ms", []byte("20"), 0)
		})
		nobody := &frame.Route{Dst: netip.MustParseAddr("10.77.0.99")}
		if v.v6 {
			nobody.Dst = netip.MustParseAddr("fd77::99")
		}
		if err := l[0].Prepare(nobody); err != nil {
			t.Fatal(err)
		}
		sendAll(t, l[0], packets(nobody, l[0].Capabilities(), payloadsOf(1, 100)...))
		want := []link.Unreachable{{Dst: nobody.Dst, Kind: link.HostUnreachable, QPN: 0x2a}}
		if d := cmp.Diff(want, errorsOf(t, l[0]), sameAddr); d != "" {
			t.Error("(-want +got):\n", d)
		}
	})
}

func TestVethMulticast(t *testing.T) {
	systemtest.Mark(t)
	onVeth(t, 1500, func(t *testing.T, n *namespaces, v variant) {
		if v.cfg.Portable {
			t.SkipNow()
		}
		l := n.pair(v.cfg, v.v6)
		group := netip.MustParseAddr("239.77.1.2")
		if v.v6 {
			group = netip.MustParseAddr("ff15::77")
		}
		n.in(1, func() error { return l[1].Capabilities().Multicaster.Join(group) })
		r := &frame.Route{Dst: group}
		if err := l[0].Prepare(r); err != nil {
			t.Fatal(err)
		}
		frames := packets(r, l[0].Capabilities(), payloadsOf(8, 1000)...)
		// The kernel adds the route for groups some time after the interface is up.
		await.Eventually(t, "the group has a route", func() bool {
			before := l[0].Stats().SendErrors
			sendAll(t, l[0], frames[:1])
			return l[0].Stats().SendErrors == before
		})
		receiveN(t, l[1], 1)
		sendAll(t, l[0], frames)
		for i, p := range receiveN(t, l[1], len(frames)) {
			if p.In.Dst != group || !bytes.Equal(p.Data, packetBytes(&frames[i])) {
				t.Fatalf("packet %d: to %v", i, p.In.Dst)
			}
		}
	})
}

// TestVethIdentifications: packets on the wire have the fields that the ICRC is computed for: don't fragment,
// identification 0 if sent singly and the segment's number in a burst, and the route's ports.
func TestVethIdentifications(t *testing.T) {
	systemtest.Mark(t)
	n := newNamespaces(t, 1500)
	l := n.pair(Config{}, false)
	n.in(0, func() error { // segments are cut before the veth pair
		a, err := netlink.LinkByName("a")
		if err != nil {
			return err
		}
		return netlink.LinkSetGSOMaxSegs(a, 1)
	})
	var tap int
	n.in(1, func() (err error) {
		tap, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(networkOrder(unix.ETH_P_ALL)))
		return err
	})
	defer unix.Close(tap)
	r := &frame.Route{Dst: l[1].Status().Addr.Addr(), SrcPort: 0xc0de, TrafficClass: 26<<2 | 2, HopLimit: 9}
	// The pool's socket must be bound in the link's namespace.
	n.in(0, func() error { return l[0].Prepare(r) })
	caps := l[0].Capabilities()
	frames := append(packets(r, caps, payloadsOf(5, 1024)...), packets(r, caps, payloadsOf(1, 64)...)...)
	frames = append(frames, packets(r, caps, payloadsOf(3, 256)...)...)
	sendAll(t, l[0], frames)
	receiveN(t, l[1], len(frames))
	b := make([]byte, 2048)
	for i := range frames {
		k := readTap(t, tap, b)
		ip, udp := b[:20], b[20:28]
		type header struct {
			ID, Flags, Src, Dst uint16
			TOS, TTL            byte
			Length              int
		}
		got := header{binary.BigEndian.Uint16(ip[4:]), binary.BigEndian.Uint16(ip[6:]), binary.BigEndian.Uint16(udp),
			binary.BigEndian.Uint16(udp[2:]), ip[1], ip[8], k - 28}
		want := header{frames[i].Segment, 0x4000, 0xc0de, 4791, 26<<2 | 2, 9, frames[i].Len()}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("packet %d: %s", i, d)
		}
	}
}

// readTap reads the next IPv4 UDP packet from a packet socket and returns its length.
func readTap(t *testing.T, fd int, b []byte) int {
	t.Helper()
	for deadline := time.Now().Add(await.Limit); time.Now().Before(deadline); {
		k, _, err := unix.Recvfrom(fd, b, 0)
		if err == unix.EAGAIN {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if k > 28 && b[0]>>4 == 4 && b[9] == unix.IPPROTO_UDP {
			return k
		}
	}
	t.Fatal("no packet was seen")
	return 0
}

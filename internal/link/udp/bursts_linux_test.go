package udp

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestShortBurstsAreFrames: the packets of a burst shorter than what is spliced leave as a frame, those of a longer one
// through the socket; all count as many packets and bytes either way.
func TestShortBurstsAreFrames(t *testing.T) {
	systemtest.Mark(t)
	framePairs(t, func(t *testing.T, n *namespaces, l [2]Link, modes [2]packet.Mode) {
		r := routeTo(t, l[0], l[1])
		tend(l[0])
		for _, c := range []struct {
			packets, length int
			frames          uint64
		}{{1, 4096, 1}, {2, 1024, 2}, {15, 1024, 15}, {3, 4096, 3}, {4, 4096, 0}, {20, 1024, 0}} {
			before := l[0].Stats()
			frames := packets(r, l[0].Capabilities(), payloadsOf(c.packets, c.length)...)
			sendAll(t, l[0], frames)
			for i, p := range receiveN(t, l[1], len(frames)) {
				if !bytes.Equal(p.Data, packetBytes(&frames[i])) {
					t.Fatalf("packet %d of %d differs", i, len(frames))
				}
			}
			if modes[0] == packet.Off {
				c.frames = 0
			}
			after := l[0].Stats()
			got := [4]uint64{after.SentFrames - before.SentFrames, after.SentPackets - before.SentPackets,
				after.SentBursts - before.SentBursts, after.SentBytes - before.SentBytes}
			if want := [4]uint64{c.frames, uint64(c.packets), 1, uint64(c.packets * (c.length + 16))}; got != want {
				t.Errorf("%d packets of %d bytes: %d frames, packets, bursts and bytes, want %d", c.packets, c.length, got, want)
			}
		}
	})
}

// TestFramesOfBurstsAreAsFromASocket: on the wire a burst that was a frame is byte for byte what the socket sends.
func TestFramesOfBurstsAreAsFromASocket(t *testing.T) {
	systemtest.Mark(t)
	for _, v6 := range []bool{false, true} {
		var wire [2][][]byte
		for i, mode := range []packet.Mode{packet.Off, packet.Auto} {
			n := newNamespaces(t, 1500)
			l := n.pairOf([2]Config{{Frames: mode}, {Frames: packet.Off}}, v6)
			if s := l[0].Status().Frames; mode == packet.Auto && s != usesFrames {
				t.Skip(s)
			}
			n.in(0, func() error { // segments are cut before the veth pair
				a, err := netlink.LinkByName("a")
				if err != nil {
					return err
				}
				return netlink.LinkSetGSOMaxSegs(a, 1)
			})
			r := &frame.Route{Dst: l[1].Status().Addr.Addr(), SrcPort: 0xc0de, HopLimit: 9, FlowLabel: 0}
			n.in(0, func() error { return l[0].Prepare(r) })
			var tap int
			n.in(1, func() (err error) {
				tap, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK,
					int(networkOrder(unix.ETH_P_ALL)))
				return err
			})
			defer unix.Close(tap)
			caps := l[0].Capabilities()
			sent := 0
			for _, lengths := range [][2]int{{5, 1024}, {1, 1000}, {3, 400}, {2, 1040}} {
				payloads := payloadsOf(lengths[0], lengths[1])
				payloads[len(payloads)-1] = payloads[len(payloads)-1][:lengths[1]-20]
				sendAll(t, l[0], packets(r, caps, payloads...))
				sent += len(payloads)
			}
			receiveN(t, l[1], sent)
			b := make([]byte, 2048)
			for len(wire[i]) < sent {
				k := readUDP(t, tap, b)
				wire[i] = append(wire[i], bytes.Clone(b[:k]))
			}
		}
		if d := cmp.Diff(wire[0], wire[1]); d != "" {
			t.Errorf("v6 %v: (-socket +frames):\n%s", v6, d)
		}
	}
}

// readUDP reads the next IP packet with UDP to port 4791 from a packet socket and returns its length.
func readUDP(t *testing.T, fd int, b []byte) (n int) {
	t.Helper()
	await.Eventually(t, "a packet is seen", func() bool {
		k, _, err := unix.Recvfrom(fd, b, 0)
		if err != nil {
			return false
		}
		at := 20
		if b[0]>>4 == 6 {
			at = 40
		}
		n = k
		return k > at+8 && b[at+2] == 0x12 && b[at+3] == 0xb7 && (b[9] == unix.IPPROTO_UDP || at == 40 && b[6] == unix.IPPROTO_UDP)
	})
	return n
}

// TestFramesKeepToTheMTU: packets that have become too long for the interface are not sent as the segments of a burst,
// whose length the system does not check, but refused and reported, as by the socket.
func TestFramesKeepToTheMTU(t *testing.T) {
	systemtest.Mark(t)
	n := newNamespaces(t, 1500)
	l := n.pairOf([2]Config{}, false)
	if s := l[0].Status().Frames; s != usesFrames {
		t.Skip(s)
	}
	r := routeTo(t, l[0], l[1])
	send := func() (frames, refused uint64) {
		tend(l[0])
		before := l[0].Stats()
		sendAll(t, l[0], packets(r, l[0].Capabilities(), payloadsOf(2, 1024)...))
		drain(t, l[1])
		after := l[0].Stats()
		return after.SentFrames - before.SentFrames, after.SendErrors - before.SendErrors
	}
	mtu := func(mtu int) {
		n.in(0, func() error {
			a, err := netlink.LinkByName("a")
			if err != nil {
				return err
			}
			return netlink.LinkSetMTU(a, mtu)
		})
	}
	await.Eventually(t, "bursts leave as frames", func() bool { f, _ := send(); return f == 2 })
	mtu(1000)
	tend(l[0])
	for range 3 {
		if frames, refused := send(); frames != 0 || refused != 2 {
			t.Fatalf("of 2 packets longer than the MTU %d were sent as frames, and %d refused", frames, refused)
		}
	}
	out := make([]link.Unreachable, 4)
	if k := l[0].Errors(out); k == 0 || out[0].Kind != link.PacketTooBig {
		t.Errorf("errors: %+v", out[:k])
	}
	mtu(1500)
	await.Eventually(t, "bursts leave as frames again", func() bool { f, _ := send(); return f == 2 })
}

package udp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/wire/ib"
)

const usesFrames = "short packets as frames"

// framePairs runs a test with two links across a veth pair that use frames at the first, the second or both, over
// IPv4 and IPv6.
func framePairs(t *testing.T, test func(t *testing.T, n *namespaces, l [2]Link, modes [2]packet.Mode)) {
	for _, v6 := range []bool{false, true} {
		for _, modes := range [][2]packet.Mode{{packet.Auto, packet.Auto}, {packet.Auto, packet.Off}, {packet.Off, packet.Auto}} {
			name := map[bool]string{false: "v4", true: "v6"}[v6] + "/" + modes[0].String() + " " + modes[1].String()
			t.Run(name, func(t *testing.T) {
				n := newNamespaces(t, 9000)
				l := n.pairOf([2]Config{{Frames: modes[0]}, {Frames: modes[1]}}, v6)
				for i, m := range modes {
					if s := l[i].Status().Frames; (m == packet.Auto) != (s == usesFrames) {
						t.Skipf("side %d: %s", i, s)
					}
				}
				test(t, n, l, modes)
			})
		}
	}
}

// numbered returns packets with payloads of the given lengths, whose PSNs count up from first.
func numbered(r *frame.Route, caps link.Capabilities, first uint32, lengths ...int) []frame.Out {
	payloads := make([][]byte, len(lengths))
	for i, n := range lengths {
		payloads[i] = make([]byte, n)
	}
	frames := packets(r, caps, payloads...)
	for i := range frames {
		binary.BigEndian.PutUint32(frames[i].Head[frame.HeadRoom+8:], first+uint32(i))
	}
	return frames
}

// TestFramesKeepOrder: short packets, bursts of them and long ones, in any order, each arrive once and in order,
// whether the sender or the receiver uses frames or not.
func TestFramesKeepOrder(t *testing.T) {
	framePairs(t, func(t *testing.T, n *namespaces, l [2]Link, modes [2]packet.Mode) {
		random := rand.New(rand.NewPCG(1, 2))
		for side := range l {
			from, to := l[side], l[1-side]
			r := routeTo(t, from, to)
			next := uint32(0)
			tend(from)
			for range 60 {
				var lengths []int
				for range 1 + random.IntN(8) {
					size := []int{0, 8, 64, 200, 1024, 4096}[random.IntN(6)]
					for range 1 + random.IntN(5) {
						lengths = append(lengths, size)
					}
				}
				sendAll(t, from, numbered(r, from.Capabilities(), next, lengths...))
				for i, p := range receiveN(t, to, len(lengths)) {
					psn := binary.BigEndian.Uint32(p.data[8:])
					if psn != next+uint32(i) || len(p.data) != lengths[i]+16 {
						t.Fatalf("side %d: packet %d is %d with %d bytes, want %d with %d", side, i, psn, len(p.data), next+uint32(i), lengths[i]+16)
					}
					if p.in.Src != r.Src || p.in.Dst != r.Dst || p.in.SrcPort != r.SrcPort || p.in.HopLimit != 64 {
						t.Fatalf("side %d: packet from %v:%d to %v, hop limit %d", side, p.in.Src, p.in.SrcPort, p.in.Dst, p.in.HopLimit)
					}
				}
				next += uint32(len(lengths))
			}
			if n := receiveSome(t, to); n != 0 {
				t.Errorf("side %d: %d packets came twice", side, n)
			}
			s, rs := from.Stats(), to.Stats()
			if (s.SentFrames > 0) != (modes[side] == packet.Auto) || (rs.ReceivedFrames > 0) != (modes[1-side] == packet.Auto) {
				t.Errorf("side %d: %d frames sent, %d received", side, s.SentFrames, rs.ReceivedFrames)
			}
			if rs.ReceiveDrops != 0 || rs.ReceivedPackets < uint64(next) {
				t.Errorf("side %d: %+v", side, rs)
			}
		}
	})
}

// TestFramesOfAMessageAndItsAcknowledgement: a message and the acknowledgement behind it leave as single frames;
// other packets of one length leave together through the socket.
func TestFramesOfAMessageAndItsAcknowledgement(t *testing.T) {
	framePairs(t, func(t *testing.T, n *namespaces, l [2]Link, modes [2]packet.Mode) {
		if modes[0] == packet.Off {
			t.Skip("no frames are sent")
		}
		r := routeTo(t, l[0], l[1])
		tend(l[0])
		for _, c := range []struct {
			opcodes []ib.Opcode
			want    uint64 // frames
		}{
			{[]ib.Opcode{ib.RCSendOnly, ib.RCAcknowledge}, 2},
			{[]ib.Opcode{ib.RCAcknowledge, ib.RCSendOnly}, 0},
			{[]ib.Opcode{ib.RCSendOnly, ib.RCSendOnly}, 0},
			{[]ib.Opcode{ib.RCSendOnly, ib.RCAcknowledge, ib.RCSendOnly}, 0},
		} {
			frames := numbered(r, l[0].Capabilities(), 1, make([]int, len(c.opcodes))...)
			for i, op := range c.opcodes {
				frames[i].Head[frame.HeadRoom] = byte(op)
			}
			before := l[0].Stats().SentFrames
			sendAll(t, l[0], frames)
			for i, p := range receiveN(t, l[1], len(frames)) {
				if got := ib.BTH(p.data).Opcode(); got != c.opcodes[i] {
					t.Errorf("%v: packet %d is %v", c.opcodes, i, got)
				}
			}
			if got := l[0].Stats().SentFrames - before; got != c.want {
				t.Errorf("%v: %d frames, want %d", c.opcodes, got, c.want)
			}
		}
	})
}

// TestFramesRingFull: packets that find no room in the ring are lost and counted as at a full socket.
func TestFramesRingFull(t *testing.T) {
	framePairs(t, func(t *testing.T, n *namespaces, l [2]Link, modes [2]packet.Mode) {
		if modes[1] == packet.Off {
			t.Skip("no ring")
		}
		r := routeTo(t, l[0], l[1])
		before := l[1].Stats()
		const sent = 5000
		for i := range uint32(sent) {
			sendAll(t, l[0], numbered(r, l[0].Capabilities(), i, 8))
		}
		drain(t, l[1])
		s := l[1].Stats()
		arrived, lost := s.ReceivedPackets-before.ReceivedPackets, s.ReceiveDrops-before.ReceiveDrops
		if lost == 0 || arrived+lost != sent {
			t.Errorf("%d packets sent, %d arrived, %d were counted as lost", sent, arrived, lost)
		}
		sendAll(t, l[0], numbered(r, l[0].Capabilities(), 0, 8, 4096, 8))
		receiveN(t, l[1], 3)
	})
}

// until calls step every few milliseconds until it reports true.
func until(t *testing.T, what string, step func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !step(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// tend does what the owner of a link does every few milliseconds.
func tend(l Link) { l.Errors(make([]link.Unreachable, 4)) }

// TestFramesFollowTheNeighbour: when the next hop gets another MAC address, frames use it as soon as the system does.
func TestFramesFollowTheNeighbour(t *testing.T) {
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
		until(t, "nothing arrives", arrives)
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
		until(t, "nothing arrives at the neighbour's new address as a frame", func() bool {
			return arrives() && l[0].Stats().SentFrames > was+10
		})
	})
}

// TestFramesFollowTheRoute: a destination that the system reaches by another interface, or not at all, gets no
// frames. Nor does a former neighbour whose route now leads elsewhere.
func TestFramesFollowTheRoute(t *testing.T) {
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
	until(t, "no frames", func() bool { return send() == 1 })
	blackhole := &netlink.Route{Dst: &net.IPNet{IP: r.Dst.AsSlice(), Mask: net.CIDRMask(32, 32)}, Type: unix.RTN_BLACKHOLE}
	n.in(0, func() error { return netlink.RouteAdd(blackhole) })
	until(t, "frames go where no route leads", func() bool { return send() == 0 })
	for range 5 {
		if send() != 0 {
			t.Fatal("a frame was sent to a destination without a route")
		}
	}
	n.in(0, func() error { return netlink.RouteDel(blackhole) })
	until(t, "no frames any more", func() bool { return send() == 1 })
}

// nftChain makes an nftables table of family inet in this network namespace, with a chain at a hook and, if rule is
// set, a rule in it that matches everything and does nothing.
func nftChain(name string, hook uint32, rule bool) error {
	const inet = unix.NFPROTO_INET
	const create = unix.NLM_F_REQUEST | unix.NLM_F_CREATE
	var batch []byte
	message := func(kind, flags uint16, family, subsystem byte, attributes []byte) {
		b := make([]byte, unix.SizeofNlMsghdr+4, 64)
		b[unix.SizeofNlMsghdr], b[unix.SizeofNlMsghdr+3] = family, subsystem
		b = append(b, attributes...)
		binary.NativeEndian.PutUint32(b, uint32(len(b)))
		binary.NativeEndian.PutUint16(b[4:], kind)
		binary.NativeEndian.PutUint16(b[6:], flags)
		batch = append(batch, b...)
	}
	attribute := func(b []byte, kind uint16, value []byte) []byte {
		b = binary.NativeEndian.AppendUint16(b, uint16(4+len(value)))
		b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
		return append(b, make([]byte, -len(b)&3)...)
	}
	table := func(kind uint16) []byte { return attribute(nil, kind, append([]byte(name), 0)) }
	const nft = unix.NFNL_SUBSYS_NFTABLES << 8
	message(unix.NFNL_MSG_BATCH_BEGIN, unix.NLM_F_REQUEST, 0, unix.NFNL_SUBSYS_NFTABLES, nil)
	message(nft|unix.NFT_MSG_NEWTABLE, create, inet, 0, table(unix.NFTA_TABLE_NAME))
	at := attribute(nil, unix.NFTA_HOOK_HOOKNUM, binary.BigEndian.AppendUint32(nil, hook))
	at = attribute(at, unix.NFTA_HOOK_PRIORITY, make([]byte, 4))
	chain := attribute(table(unix.NFTA_CHAIN_TABLE), unix.NFTA_CHAIN_NAME, []byte("c\x00"))
	chain = attribute(chain, unix.NFTA_CHAIN_HOOK|unix.NLA_F_NESTED, at)
	chain = attribute(chain, unix.NFTA_CHAIN_TYPE, []byte("filter\x00"))
	if !rule {
		message(nft|unix.NFT_MSG_NEWCHAIN, create|unix.NLM_F_ACK, inet, 0, chain)
	} else {
		message(nft|unix.NFT_MSG_NEWCHAIN, create, inet, 0, chain)
		message(nft|unix.NFT_MSG_NEWRULE, create|unix.NLM_F_APPEND|unix.NLM_F_ACK, inet, 0,
			attribute(table(unix.NFTA_RULE_TABLE), unix.NFTA_RULE_CHAIN, []byte("c\x00")))
	}
	message(unix.NFNL_MSG_BATCH_END, unix.NLM_F_REQUEST, 0, unix.NFNL_SUBSYS_NFTABLES, nil)
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, batch, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, err := unix.Read(fd, answer)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 {
		return errors.New("no answer")
	}
	if e := -int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); e != 0 {
		return unix.Errno(e)
	}
	return nil
}

// Hooks of nftables (linux/netfilter.h).
const (
	inputHook   = 1
	forwardHook = 2
)

// TestFramesStayBesideIdleChains: chains that cannot affect packets to this host, such as those without rules or for
// forwarded packets, do not count as a firewall.
func TestFramesStayBesideIdleChains(t *testing.T) {
	n := newNamespaces(t, 1500)
	made := make(chan error, 2)
	n.in(1, func() error {
		made <- nftChain("empty", inputHook, false)
		made <- nftChain("passing", forwardHook, true)
		return nil
	})
	for range 2 {
		if err := <-made; err != nil {
			t.Skipf("this kernel has no nftables: %v", err)
		}
	}
	n.in(1, func() error {
		l, err := Open(Config{Addr: n.v4[1], Port: 4792})
		if err != nil {
			return err
		}
		if s := l.Status().Frames; strings.Contains(s, "firewall") {
			t.Errorf("status %q with chains that do nothing, want no mention of a firewall", s)
		}
		return l.Close()
	})
}

// TestFramesYieldToAFirewall: frames would bypass a firewall, so none are used beside one unless they are forced. If
// one is set up later, the socket receives everything from then on, each packet once.
func TestFramesYieldToAFirewall(t *testing.T) {
	n := newNamespaces(t, 1500)
	l := n.pairOf([2]Config{}, false)
	if s := l[1].Status().Frames; s != usesFrames {
		t.Skip(s)
	}
	made := make(chan error, 1)
	n.in(1, func() error { made <- nftChain("guard", inputHook, true); return nil })
	if err := <-made; err != nil {
		t.Skipf("this kernel has no nftables: %v", err)
	}
	until(t, "frames are still used beside the firewall", func() bool {
		tend(l[1])
		return strings.Contains(l[1].Status().Frames, "firewall")
	})
	r := routeTo(t, l[0], l[1])
	before := l[1].Stats()
	sendAll(t, l[0], numbered(r, l[0].Capabilities(), 0, 8, 1024, 64, 64, 8))
	receiveN(t, l[1], 5)
	if k := receiveSome(t, l[1]); k != 0 || l[1].Stats().ReceivedFrames != before.ReceivedFrames {
		t.Errorf("%d packets came twice; %+v", k, l[1].Stats())
	}
	back := routeTo(t, l[1], l[0])
	sendAll(t, l[1], numbered(back, l[1].Capabilities(), 0, 8, 1024, 8))
	receiveN(t, l[0], 3)
	if s := l[1].Stats(); s.SentFrames != before.SentFrames {
		t.Errorf("%d frames were sent beside the firewall", s.SentFrames-before.SentFrames)
	}
	for mode, want := range map[packet.Mode]string{packet.Auto: "no frames: the system has a firewall, which they would pass by", packet.On: usesFrames} {
		n.in(1, func() error {
			other, err := Open(Config{Addr: n.v4[1], Port: 4792, Frames: mode})
			if err != nil {
				return err
			}
			if s := other.Status().Frames; s != want {
				t.Errorf("%v beside a firewall: %q, want %q", mode, s, want)
			}
			return other.Close()
		})
	}
}

// TestFramesWakeTheSleeper: a link sleeps while nothing comes, and wakes for a packet that only the ring has.
func TestFramesWakeTheSleeper(t *testing.T) {
	framePairs(t, func(t *testing.T, n *namespaces, l [2]Link, modes [2]packet.Mode) {
		if modes[1] == packet.Off {
			t.Skip("no ring")
		}
		drain(t, l[1])
		tend := func() { n.in(1, func() error { tend(l[1]); return nil }) } // in another namespace it cannot tell what tc has
		tend()
		asleep := func(wait int) int {
			var fds []unix.PollFd
			for _, fd := range l[1].Descriptors() {
				fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			}
			k, err := unix.Poll(fds, wait)
			if err != nil && err != unix.EINTR {
				t.Fatal(err)
			}
			return k
		}
		until(t, "something is always readable", func() bool {
			receiveSome(t, l[1])
			tend()
			return l[1].Capabilities().Sleeper.Doze() && asleep(20) == 0
		})
		sendAll(t, l[0], numbered(routeTo(t, l[0], l[1]), l[0].Capabilities(), 1, 8))
		ring := []unix.PollFd{{Fd: int32(l[1].Descriptors()[2]), Events: unix.POLLIN}}
		if k, err := unix.Poll(ring, 20_000); err != nil && err != unix.EINTR || k == 0 {
			t.Fatalf("poll did not wake for a packet: %d, %v", k, err)
		}
		receiveN(t, l[1], 1)
		sendAll(t, l[0], numbered(routeTo(t, l[0], l[1]), l[0].Capabilities(), 2, 8))
		if l[1].Capabilities().Sleeper.Doze() && asleep(0) == 0 {
			t.Error("the link may sleep although a packet waits")
		}
		receiveN(t, l[1], 1)
	})
}

// TestFramesAreNotNeeded: without the right to open packet sockets, or with frames switched off, a link uses its
// socket alone.
func TestFramesAreNotNeeded(t *testing.T) {
	v := variant{"", false, Config{Frames: packet.Off}}
	l := v.open(t)
	if s := l.Status().Frames; s != "no frames: switched off" {
		t.Errorf("status %q, want frames switched off", s)
	}
	if len(l.Descriptors()) != 2 {
		t.Errorf("descriptors %v, want 2", l.Descriptors())
	}
	_, err := Open(Config{Addr: netip.MustParseAddr("127.0.0.1"), Frames: 9})
	var field *FieldError
	if !errors.As(err, &field) || field.Field != "Frames" {
		t.Errorf("an unknown mode: error %v, want one that names Frames", err)
	}
	done := make(chan string)
	go func() { // a thread that gave up the right ends with its goroutine
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			done <- ""
			return
		}
		l, err := Open(Config{Addr: randomLoopback(), Port: randomPort()})
		if err != nil {
			done <- err.Error()
			return
		}
		done <- l.Status().Frames
		l.Close()
	}()
	if s := <-done; !strings.HasPrefix(s, "no frames: ") {
		t.Errorf("without capabilities: %q", s)
	}
}

// TestFramesOnLoopback: over the loopback interface short packets are received from the ring and sent by the socket.
func TestFramesOnLoopback(t *testing.T) {
	v := variant{"bursts", false, Config{}}
	a, b := v.open(t), v.open(t)
	if s := b.Status().Frames; s != "short packets received as frames" {
		t.Skip(s)
	}
	r := routeTo(t, a, b)
	frames := packets(r, a.Capabilities(), payloadsOf(1, 20)[0], payloadsOf(1, 3000)[0], nil)
	for i := range frames {
		frames[i].Segment = 0
		sendAll(t, a, frames[i:i+1])
	}
	for i, p := range receiveN(t, b, len(frames)) {
		if !bytes.Equal(p.data, packetBytes(&frames[i])) {
			t.Errorf("packet %d arrived with %d bytes, other than it was sent", i, len(p.data))
		}
	}
	if s, rs := a.Stats(), b.Stats(); s.SentFrames != 0 || rs.ReceivedFrames != 2 {
		t.Errorf("%d frames sent, %d received; want 0 and 2", s.SentFrames, rs.ReceivedFrames)
	}
}

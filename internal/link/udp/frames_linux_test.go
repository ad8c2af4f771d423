package udp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
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

// TestFramesKeepOrder: short packets, bursts of them and long ones, in any order, each arrive once and in order,
// whether the sender or the receiver uses frames or not.
func TestFramesKeepOrder(t *testing.T) {
	systemtest.Mark(t)
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
					psn := binary.BigEndian.Uint32(p.Data[8:])
					if psn != next+uint32(i) || len(p.Data) != lengths[i]+16 {
						t.Fatalf("side %d: packet %d is %d with %d bytes, want %d with %d", side, i, psn, len(p.Data), next+uint32(i),
							lengths[i]+16)
					}
					if p.In.Src != r.Src || p.In.Dst != r.Dst || p.In.SrcPort != r.SrcPort || p.In.HopLimit != frame.DefaultHopLimit {
						t.Fatalf("side %d: packet from %v:%d to %v, hop limit %d", side, p.In.Src, p.In.SrcPort, p.In.Dst, p.In.HopLimit)
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
// other packets of one length leave together.
func TestFramesOfAMessageAndItsAcknowledgement(t *testing.T) {
	systemtest.Mark(t)
	framePairs(t, func(t *testing.T, n *namespaces, l [2]Link, modes [2]packet.Mode) {
		if modes[0] == packet.Off {
			t.Skip("no frames are sent")
		}
		r := routeTo(t, l[0], l[1])
		tend(l[0])
		for _, c := range []struct {
			opcodes []ib.Opcode
			want    uint64 // messages to the system
		}{
			{[]ib.Opcode{ib.RCSendOnly, ib.RCAcknowledge}, 2},
			{[]ib.Opcode{ib.RCAcknowledge, ib.RCSendOnly}, 1},
			{[]ib.Opcode{ib.RCSendOnly, ib.RCSendOnly}, 1},
			{[]ib.Opcode{ib.RCSendOnly, ib.RCAcknowledge, ib.RCSendOnly}, 1},
		} {
			frames := numbered(r, l[0].Capabilities(), 1, make([]int, len(c.opcodes))...)
			for i, op := range c.opcodes {
				frames[i].Head[frame.HeadRoom] = byte(op)
			}
			before := l[0].Stats()
			sendAll(t, l[0], frames)
			for i, p := range receiveN(t, l[1], len(frames)) {
				if got := ib.BTH(p.Data).Opcode(); got != c.opcodes[i] {
					t.Errorf("%v: packet %d is %v", c.opcodes, i, got)
				}
			}
			after := l[0].Stats()
			if got := after.SentBursts - before.SentBursts; got != c.want {
				t.Errorf("%v: %d messages to the system, want %d", c.opcodes, got, c.want)
			}
			if got := after.SentFrames - before.SentFrames; got != uint64(len(frames)) {
				t.Errorf("%v: %d packets were sent as frames", c.opcodes, got)
			}
		}
	})
}

// TestFrames_WaitAtTheSocketWhileMemoryIsFull: short packets that find no room in memory wait at the socket, and none is
// lost or overtaken.
func TestFrames_WaitAtTheSocketWhileMemoryIsFull(t *testing.T) {
	systemtest.Mark(t)
	framePairs(t, func(t *testing.T, n *namespaces, l [2]Link, modes [2]packet.Mode) {
		if modes[1] == packet.Off {
			t.Skip("nothing comes into memory")
		}
		r := routeTo(t, l[0], l[1])
		tend(l[0])
		const sent = 3000
		for i := range uint32(sent) {
			sendAll(t, l[0], numbered(r, l[0].Capabilities(), i, 8))
		}
		before := l[1].Stats()
		for i, p := range receiveN(t, l[1], sent) {
			if psn := binary.BigEndian.Uint32(p.Data[8:]); psn != uint32(i) {
				t.Fatalf("packet %d in place of %d", psn, i)
			}
		}
		s := l[1].Stats()
		frames := s.ReceivedFrames - before.ReceivedFrames
		if frames == 0 || frames == sent || s.ReceivedPackets-before.ReceivedPackets != sent || s.ReceiveDrops != 0 {
			t.Errorf("%d of %d packets came into memory: %+v", frames, sent, s)
		}
	})
}

// TestFramesWakeTheSleeper: a link sleeps while nothing comes, and wakes for a short packet.
func TestFramesWakeTheSleeper(t *testing.T) {
	systemtest.Mark(t)
	framePairs(t, func(t *testing.T, n *namespaces, l [2]Link, modes [2]packet.Mode) {
		if modes[1] == packet.Off {
			t.Skip("nothing comes into memory")
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
		await.Eventually(t, "nothing is readable", func() bool {
			receiveSome(t, l[1])
			tend()
			return l[1].Capabilities().Sleeper.ArmWakeUp() && asleep(20) == 0
		})
		sendAll(t, l[0], numbered(routeTo(t, l[0], l[1]), l[0].Capabilities(), 1, 8))
		if asleep(20_000) == 0 {
			t.Fatal("poll did not wake for a packet")
		}
		receiveN(t, l[1], 1)
		before := l[1].Stats().ReceivedFrames
		sendAll(t, l[0], numbered(routeTo(t, l[0], l[1]), l[0].Capabilities(), 2, 8))
		if l[1].Capabilities().Sleeper.ArmWakeUp() && asleep(0) == 0 {
			t.Error("the link may sleep although a packet waits")
		}
		if receiveN(t, l[1], 1); l[1].Stats().ReceivedFrames == before {
			t.Error("after the sleep short packets still come to the socket")
		}
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
		l, err := Open(Config{Addr: loopback.Addr(), Port: loopback.Port()})
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

// TestFramesOnLoopback: over the loopback interface short packets are received from memory and sent by the socket; one
// behind a message that waits at the socket waits there, too.
func TestFramesOnLoopback(t *testing.T) {
	v := variant{"bursts", false, Config{}}
	a, b := v.open(t), v.open(t)
	if s := b.Status().Frames; s != "short packets received as frames" {
		t.Skip(s)
	}
	r := routeTo(t, a, b)
	frames := packets(r, a.Capabilities(), payloadsOf(1, 20)[0], payloadsOf(1, 4096)[0], nil)
	for i := range frames {
		frames[i].Segment = 0
		sendAll(t, a, frames[i:i+1])
	}
	for i, p := range receiveN(t, b, len(frames)) {
		if !bytes.Equal(p.Data, packetBytes(&frames[i])) {
			t.Errorf("packet %d arrived with %d bytes, other than it was sent", i, len(p.Data))
		}
	}
	if s, rs := a.Stats(), b.Stats(); s.SentFrames != 0 || rs.ReceivedFrames != 1 {
		t.Errorf("%d frames sent, %d received; want 0 and 1", s.SentFrames, rs.ReceivedFrames)
	}
}

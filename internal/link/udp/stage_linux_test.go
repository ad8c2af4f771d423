package udp

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
)

// stagingPair opens two links of a kernel that can send pages without copying, and a route from the first to the
// second.
func stagingPair(t *testing.T, v6 bool) (from, to *socketLink, r *frame.Route) {
	t.Helper()
	v := variant{v6: v6, cfg: Config{ReceiveBuffer: 8 << 20}}
	from, to = v.open(t).(*socketLink), v.open(t).(*socketLink)
	if from.caps.Stager == nil {
		t.Skip("this kernel or processor supports no staging")
	}
	return from, to, routeTo(t, from, to)
}

// stageAll stages the packets that the link accepts and returns their number.
func stageAll(l *socketLink, frames []frame.Out) (n int) {
	for i := range frames {
		o := &frames[i]
		if o.Staged = l.Stage(o, o.Len()); o.Staged != nil {
			copy(o.Staged, packetBytes(o))
			n++
		}
	}
	return n
}

// carry sends frames and checks that all arrive in order.
func carry(t *testing.T, from, to *socketLink, frames []frame.Out) {
	t.Helper()
	want := make([][]byte, len(frames))
	for i := range frames {
		want[i] = packetBytes(&frames[i])
	}
	sendAll(t, from, frames)
	for i, p := range receiveN(t, to, len(frames)) {
		if !bytes.Equal(p.Data, want[i]) {
			t.Fatalf("packet %d of %d differs", i, len(frames))
		}
	}
}

// TestStagedArrive: staged bursts arrive as others do, also after the ring has wrapped. What is too little for the
// system calls is sent with a copy.
func TestStagedArrive(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		from, to, r := stagingPair(t, v6)
		total, staged := 0, uint64(0)
		for i := 0; total < 3*ringSize; i++ {
			size := []int{4096, 1024, 2048, 1044}[i%4]
			frames := packets(r, from.caps, append(payloadsOf(40, size), payloadsOf(1, 100)...)...)
			for k := range frames {
				frames[k].Head[frame.HeadRoom+11] = byte(i)
				total += frames[k].Len()
			}
			if n := stageAll(from, frames); n != len(frames) {
				t.Fatalf("%d of %d packets were staged", n, len(frames))
			}
			carry(t, from, to, frames)
			if s := from.Stats().SentStaged; s <= staged {
				t.Fatalf("%d packets of %d bytes left without a copy so far, %d before", s, size, staged)
			} else {
				staged = s
			}
		}
		few := packets(r, from.caps, payloadsOf(3, 4096)...)
		stageAll(from, few)
		carry(t, from, to, few)
		if s := from.Stats(); s.SentStaged != staged || s.SendErrors != 0 {
			t.Errorf("%d packets left without a copy, want the %d before; %d errors", s.SentStaged, staged, s.SendErrors)
		}
	}
}

// TestStagePlaces: bursts lie close behind each other in the ring, whole, in no more pages than a pipe takes, without
// overlapping, and begin on cache lines of their own.
func TestStagePlaces(t *testing.T) {
	for _, n := range []int{4112, 2064, 1040, 4128} {
		r := &stageRing{memory: make([]byte, ringSize)}
		most := n * min(maxSegments, maxBurst/n)
		close, bursts := 0, 0
		for end := 0; bursts < 1000; bursts++ {
			at := r.place(most)
			switch {
			case at%lineSize != 0:
				t.Fatalf("%d bytes a packet: a burst at %d begins inside of a line", n, at)
			case (at%pageSize+most+pageSize-1)/pageSize > pagesMost:
				t.Fatalf("%d bytes a packet: a burst of %d at %d has more than %d pages", n, most, at, pagesMost)
			case at+most > ringSize, at < end && at != 0:
				t.Fatalf("%d bytes a packet: a burst of %d at %d behind one that ends at %d", n, most, at, end)
			case at-end < lineSize:
				close++
			}
			r.at = at + most
			end = r.at
		}
		if n == 4112 && close < bursts*3/4 {
			t.Errorf("%d of %d bursts lie close behind the one before", close, bursts)
		}
	}
}

// TestStagedInPart: a burst of which some packets are not staged, or that is split, is sent as a copy of what the
// frames contain.
func TestStagedInPart(t *testing.T) {
	from, to, r := stagingPair(t, false)
	for _, c := range []struct {
		name string
		hurt func(frames []frame.Out)
	}{
		{"the first is not staged", func(f []frame.Out) { f[0].Staged = nil }},
		{"the last is not staged", func(f []frame.Out) { f[len(f)-1].Staged = nil }},
		{"taken apart", func(f []frame.Out) {
			for i := range f {
				link.Single(&f[i], true)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			frames := packets(r, from.caps, payloadsOf(15, 4096)...)
			stageAll(from, frames)
			c.hurt(frames)
			carry(t, from, to, frames)
			if s := from.Stats(); s.SentStaged != 0 {
				t.Errorf("%d packets left without a copy", s.SentStaged)
			}
		})
	}
	// A packet in the middle that was not offered to the link ends the staged part of the burst.
	frames := packets(r, from.caps, payloadsOf(15, 4096)...)
	stageAll(from, frames[:5])
	if n := stageAll(from, frames[6:]); n != 0 {
		t.Errorf("%d packets staged behind one that is not", n)
	}
	carry(t, from, to, frames)
}

// refusingPipes give a link a pipe out of which the system takes nothing, or into which it puts not all of a burst.
var refusingPipes = map[string]func(t *testing.T, s *stage){
	// An unprivileged user with many pipes gets small ones (pipe(7), pipe-user-pages-soft).
	"small pipe": func(t *testing.T, s *stage) {
		if err := unix.Pipe2(s.pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.FcntlInt(uintptr(s.pipe[1]), unix.F_SETPIPE_SZ, 2*pageSize); err != nil {
			t.Fatal(err)
		}
	},
	"no pipe": func(t *testing.T, s *stage) {
		fd, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.pipe[0] = fd
		if s.pipe[1], err = unix.Dup(fd); err != nil {
			t.Fatal(err)
		}
	},
}

// TestStagedRefused: data that the system does not take out of a pipe is sent with a copy, whole and once, and
// nothing is staged for that destination any more.
func TestStagedRefused(t *testing.T) {
	for name, pipe := range refusingPipes {
		t.Run(name, func(t *testing.T) {
			from, to, r := stagingPair(t, false)
			pipe(t, &from.stage)
			frames := packets(r, from.caps, payloadsOf(45, 4096)...)
			stageAll(from, frames)
			carry(t, from, to, frames)
			drain(t, to)
			if s := from.Stats(); s.SentStaged != 0 || s.SendErrors != 0 || s.SentPackets != 45 {
				t.Errorf("stats %+v", s)
			}
			if n := stageAll(from, frames); n != 0 {
				t.Errorf("%d packets to the destination were staged again", n)
			}
			if from.stage.pipe != [2]int{-1, -1} {
				t.Errorf("the pipe is still open: %v", from.stage.pipe)
			}
		})
	}
}

// TestStageRings: each destination has memory of its own, for a bounded number of destinations; one that is idle
// loses it to another.
func TestStageRings(t *testing.T) {
	from, _, _ := stagingPair(t, false)
	to := func(i int) *frame.Route {
		r := &frame.Route{Dst: netip.AddrFrom4([4]byte{127, 9, 9, byte(1 + i)})}
		if err := from.Prepare(r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	o := frame.Out{}
	seen := map[*byte]bool{}
	for i := range ringsMost {
		o.Reset(to(i))
		room := from.Stage(&o, 4112)
		if room == nil || seen[&room[0]] {
			t.Fatalf("destination %d has no memory of its own", i)
		}
		seen[&room[0]] = true
	}
	o.Reset(to(ringsMost))
	if from.Stage(&o, 4112) != nil {
		t.Error("one destination more than allowed has memory")
	}
	busy := to(0)
	for range idleBursts {
		o.Reset(busy)
		from.Stage(&o, 4112)
	}
	o.Reset(to(ringsMost))
	if room := from.Stage(&o, 4112); room == nil || seen[&room[0]] {
		t.Error("after one was idle, a new destination has no memory, or that of a busy one")
	}
	if n := len(from.stage.rings); n != ringsMost {
		t.Errorf("%d rings, want %d", n, ringsMost)
	}
	single := to(1)
	single.Path.(*path).single = true
	o.Reset(single)
	if from.Stage(&o, 4112) != nil {
		t.Error("a packet that is sent singly was staged")
	}
}

// TestStageAfterClose: staged memory can still be written after Close, because a loop may be in the middle of a
// batch.
func TestStageAfterClose(t *testing.T) {
	from, _, r := stagingPair(t, false)
	frames := packets(r, from.caps, payloadsOf(30, 4096)...)
	stageAll(from, frames)
	if err := from.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range frames {
		if o := &frames[i]; o.Staged != nil {
			copy(o.Staged, packetBytes(o))
		}
	}
	stageAll(from, frames)
	if _, err := from.Send(frames); err == nil {
		t.Error("a closed link took frames")
	}
}

// TestStagedOverwritten: if staged memory is written over while packets are under way, those packets arrive with an
// ICRC that does not fit, and the others whole.
func TestStagedOverwritten(t *testing.T) {
	from, to, r := stagingPair(t, false)
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		frames := packets(r, from.caps, payloadsOf(15, 4096)...)
		for i := range frames {
			o := &frames[i]
			ib.PutICRC(o.Tail[:], ib.ICRCUpdate(ib.ICRCUpdate(0, o.Head[o.HeadStart:o.HeadEnd]), o.Payload))
		}
		stageAll(from, frames)
		sendAll(t, from, frames)
		spoiled := random.IntN(len(frames))
		frames[spoiled].Staged[100]++ // while it waits in the receiver's buffer
		for i, p := range receiveN(t, to, len(frames)) {
			n := len(p.Data) - ib.ICRCLen
			if good := ib.ICRCUpdate(0, p.Data[:n]) == ib.ICRC(p.Data[n:]); good == (i == spoiled) {
				t.Fatalf("packet %d, of which %d was written over, has an ICRC that fits: %v", i, spoiled, good)
			}
		}
	}
}

// TestNearIsNotStaged: nothing is staged for a destination that the sending loop serves itself.
func TestNearIsNotStaged(t *testing.T) {
	from, to, r := stagingPair(t, false)
	r.Near = true
	frames := packets(r, from.caps, payloadsOf(15, 4096)...)
	if n := stageAll(from, frames); n != 0 {
		t.Errorf("%d packets were staged, want none", n)
	}
	carry(t, from, to, frames)
}

// TestStage_ShorterLast: a burst of as many packets as have place, with a shorter one behind them, is sent whole wherever it begins
// in its page and in the ring, and staging goes on.
func TestStage_ShorterLast(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		from, to, r := stagingPair(t, v6)
		for total, i := 0, 0; total < 2*ringSize; i++ {
			last := []int{1, 700, 1744, 2800, 3000}[i%5]
			frames := packets(r, from.caps, append(payloadsOf(15, 4096), payloadsOf(1, last)...)...)
			frames[15].Segment = 15 // they fit within caps.MaxBurst
			for k := range frames {
				frames[k].Head[frame.HeadRoom+11] = byte(i)
				total += frames[k].Len()
			}
			stageAll(from, frames)
			carry(t, from, to, frames)
		}
		if s := from.Stats(); s.SentStaged < s.SentPackets/2 || s.SendErrors != 0 || from.stage.rings[0].refused {
			t.Errorf("%d of %d packets left without a copy, %d errors", s.SentStaged, s.SentPackets, s.SendErrors)
		}
	}
}

// TestStagedRefused_NothingElse: of a burst that the system does not take out of a pipe, or not all of it, no datagram is sent but
// its packets. An empty one over IPv6 makes Linux's Soft-RoCE panic.
func TestStagedRefused_NothingElse(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for name, pipe := range refusingPipes {
			from, to, r := stagingPair(t, v6)
			peer, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(to.Status().Addr.Addr(), 0)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = peer.Close() })
			_ = peer.SetReadBuffer(1 << 20)
			binary.BigEndian.PutUint16(r.Path.(*path).sockaddr[2:], peer.LocalAddr().(*net.UDPAddr).AddrPort().Port())
			pipe(t, &from.stage)
			frames := packets(r, from.caps, payloadsOf(15, 4096)...)
			stageAll(from, frames)
			sendAll(t, from, frames)
			b := make([]byte, 1<<16)
			for i := range frames {
				n, err := peer.Read(b)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(b[:n], packetBytes(&frames[i])) {
					t.Fatalf("IPv6 %v, %s: datagram %d has %d bytes and is not that packet of the burst", v6, name, i, n)
				}
			}
		}
	}
}

package udp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/leaks"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// TestPacketsArrive: packets arrive in order and whole, with their sender's address.
func TestPacketsArrive(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		r := routeTo(t, a, b)
		for _, c := range []struct {
			name     string
			payloads [][]byte
		}{
			{"one empty", payloadsOf(1, 0)},
			{"one", payloadsOf(1, 1024)},
			{"a burst", payloadsOf(10, 1024)},
			{"a burst with a short end", append(payloadsOf(5, 512), payloadsOf(1, 100)...)},
			{"many bursts", payloadsOf(80, 256)},
			{"unequal", [][]byte{make([]byte, 10), make([]byte, 20), make([]byte, 20), make([]byte, 8), make([]byte, 8)}},
			{"4096", payloadsOf(20, 4096)},
		} {
			t.Run(c.name, func(t *testing.T) {
				frames := packets(r, a.Capabilities(), c.payloads...)
				sendAll(t, a, frames)
				all := receiveN(t, b, len(frames))
				for i, p := range all {
					if !bytes.Equal(p.Data, packetBytes(&frames[i])) {
						t.Fatalf("packet %d of %d differs: %d bytes for %d", i, len(all), len(p.Data), frames[i].Len())
					}
					if p.In.Src != a.Status().Addr.Addr() || p.In.SrcPort != r.SrcPort || p.In.Dst != b.Status().Addr.Addr() {
						t.Fatalf("packet %d: from %v:%d to %v", i, p.In.Src, p.In.SrcPort, p.In.Dst)
					}
					if b.Status().Coalescing && a.Status().Segmentation && p.In.Segment != frames[i].Segment {
						t.Fatalf("packet %d is segment %d, was sent as %d", i, p.In.Segment, frames[i].Segment)
					}
				}
			})
		}
		s, rs := a.Stats(), b.Stats()
		if s.SentPackets != rs.ReceivedPackets || s.SentBytes != rs.ReceivedBytes || s.SendErrors != 0 || rs.ReceiveDrops != 0 {
			t.Errorf("the sender counts %+v, the receiver %+v; want the same and no errors", s, rs)
		}
		if a.Status().Segmentation && s.SentBursts >= s.SentPackets/2 {
			t.Errorf("%d packets left in %d bursts", s.SentPackets, s.SentBursts)
		}
	})
}

// TestReceiveInParts: a burst longer than the receiver's array comes in parts, without loss.
func TestReceiveInParts(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		frames := packets(routeTo(t, a, b), a.Capabilities(), payloadsOf(60, 900)...)
		sendAll(t, a, frames)
		in := make([]frame.In, 1)
		deadline := time.Now().Add(await.Limit)
		for i := 0; i < len(frames); {
			n, err := b.Receive(in)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 && time.Now().After(deadline) {
				t.Fatalf("%d packets arrived", i)
			}
			if n == 1 {
				if !bytes.Equal(in[0].Data, packetBytes(&frames[i])) {
					t.Fatalf("packet %d differs", i)
				}
				i++
			}
		}
		if n, err := b.Receive(nil); n != 0 || err != nil {
			t.Errorf("receiving into an empty array: %d, %v; want 0 and no error", n, err)
		}
	})
}

// TestTrafficClassAndHopLimit: DSCP, ECN and the hop limit are sent with each burst and reported on arrival (RFC
// 2474, RFC 3168). Routes without a hop limit have RoCE's, 16 (WinOF 5.50).
func TestTrafficClassAndHopLimit(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		if v.cfg.Portable && runtime.GOOS != "linux" {
			t.Skip("the sockets of package net do not show them")
		}
		a, b := v.open(t), variant{v6: v.v6}.open(t)
		r := routeTo(t, a, b)
		for _, c := range []struct{ class, hops, wantHops uint8 }{
			{0, 0, 16}, {26<<2 | 2, 0, 16}, {26<<2 | 3, 1, 1}, {0, 64, 64}, {0xff, 255, 255}, {0, 0, 16},
		} {
			r.TrafficClass, r.HopLimit = c.class, c.hops
			sendAll(t, a, packets(r, a.Capabilities(), payloadsOf(5, 64)...))
			for _, p := range receiveN(t, b, 5) {
				if p.In.TrafficClass != c.class || p.In.HopLimit != c.wantHops {
					t.Errorf("sent class %#x hops %d, got %#x and %d", c.class, c.hops, p.In.TrafficClass, p.In.HopLimit)
				}
			}
		}
	})
}

// TestMixedRoutes: frames of several routes, sockets and lengths in one call keep their order on each route.
func TestMixedRoutes(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b, c := v.open(t), v.open(t), v.open(t)
		toB, toC := routeTo(t, a, b), routeTo(t, a, c)
		other := &frame.Route{Dst: toB.Dst, DstPort: toB.DstPort, SrcPort: loopback.Port() | 0xc000}
		if err := a.Prepare(other); err != nil {
			t.Fatal(err)
		}
		var frames []frame.Out
		for i := range 12 {
			r := []*frame.Route{toB, toC, other}[i%3]
			frames = append(frames, packets(r, a.Capabilities(), payloadsOf(1+i%4, 100*(1+i%5))...)...)
		}
		sendAll(t, a, frames)
		want := map[netip.AddrPort][][]byte{}
		n := map[Link]int{}
		for i := range frames {
			r := frames[i].Route
			to := netip.AddrPortFrom(r.Dst, r.DstPort^r.SrcPort)
			want[to] = append(want[to], packetBytes(&frames[i]))
			if r == toC {
				n[c]++
			} else {
				n[b]++
			}
		}
		for l, k := range n {
			for _, p := range receiveN(t, l, k) {
				at := netip.AddrPortFrom(p.In.Dst, l.Status().Addr.Port()^p.In.SrcPort)
				if len(want[at]) == 0 || !bytes.Equal(want[at][0], p.Data) {
					t.Fatalf("on route %v another packet than the next one arrived", at)
				}
				want[at] = want[at][1:]
			}
		}
	})
}

// TestHostileDatagrams: datagrams that are no RoCE packets cost nothing but themselves: empty ones, short ones, and
// ones longer than any RoCE packet.
func TestHostileDatagrams(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		b := v.open(t)
		conn, err := net.Dial("udp", b.Status().Addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		lengths := []int{0, 1, 7, 8, maxPacket, maxPacket + 1, maxPacket + 2, 9000, 65000, 65507}
		for range 30 {
			for _, n := range lengths {
				if _, err := conn.Write(make([]byte, n)); err != nil && !errors.Is(err, syscall.ENOBUFS) &&
					!errors.Is(err, syscall.EMSGSIZE) {
					t.Fatal(n, err)
				}
			}
			drainNow(t, b, 4)
		}
		conn.Write([]byte("the last"))
		in := make([]frame.In, 64)
		deadline := time.Now().Add(await.Limit)
		for seen := false; !seen; {
			n, err := b.Receive(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range in[:n] {
				if len(p.Data) == 0 || len(p.Data) > maxDatagram {
					t.Fatalf("received a packet of %d bytes", len(p.Data))
				}
				seen = seen || string(p.Data) == "the last"
			}
			if time.Now().After(deadline) {
				t.Fatal("the last datagram did not arrive")
			}
		}
		if !b.Status().Coalescing && b.Stats().ReceiveTruncated == 0 {
			t.Error("no truncated packet was counted")
		}
	})
}

func drainNow(t *testing.T, l Link, calls int) {
	in := make([]frame.In, 64)
	for range calls {
		if _, err := l.Receive(in); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMulticast(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		if v.cfg.Portable {
			// Package net binds a group's socket to every address of the host, which conflicts with the port's own socket.
			if m := v.open(t).Capabilities().Multicaster; m != nil {
				t.Errorf("%T joins groups", m)
			}
			return
		}
		v.cfg.Port = loopback.Port() // groups need one port
		if v.v6 {
			t.Skip("one port of [::1] has room for one link; see the namespaces' test")
		}
		if runtime.GOOS != "linux" {
			t.Skip("needs several loopback addresses")
		}
		a, b, c := v.open(t), v.open(t), v.open(t)
		group := netip.MustParseAddr("239.77.1.2")
		for range 2 {
			if err := b.Capabilities().Multicaster.Join(group); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Capabilities().Multicaster.Join(group); err != nil {
			t.Fatal(err)
		}
		r := &frame.Route{Dst: group}
		if err := a.Prepare(r); err != nil {
			t.Fatal(err)
		}
		exchange := func(members ...Link) {
			t.Helper()
			frames := packets(r, a.Capabilities(), payloadsOf(6, 700)...)
			sendAll(t, a, frames)
			for _, m := range members {
				for i, p := range receiveN(t, m, len(frames)) {
					if p.In.Dst != group || p.In.Src != a.Status().Addr.Addr() || !bytes.Equal(p.Data, packetBytes(&frames[i])) {
						t.Fatalf("packet %d: from %v to %v", i, p.In.Src, p.In.Dst)
					}
				}
			}
		}
		exchange(b, c)
		if err := b.Capabilities().Multicaster.Leave(group); err != nil {
			t.Fatal(err)
		}
		exchange(b, c) // joined twice, left once
		if err := b.Capabilities().Multicaster.Leave(group); err != nil {
			t.Fatal(err)
		}
		exchange(c)
		if n := receiveSome(t, b); n != 0 {
			t.Errorf("%d packets after leaving", n)
		}
		if b.Capabilities().Multicaster.Leave(group) == nil {
			t.Error("left a group that was not joined")
		}
		if b.Capabilities().Multicaster.Join(netip.MustParseAddr("10.0.0.1")) == nil {
			t.Error("joined a unicast address")
		}
	})
}

// TestNothingAllocated: the data path allocates nothing.
func TestNothingAllocated(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		frames := packets(routeTo(t, a, b), a.Capabilities(), payloadsOf(30, 1024)...)
		in := make([]frame.In, 64)
		errs := make([]link.Unreachable, 4)
		if n := testing.AllocsPerRun(30, func() {
			a.Send(frames)
			for got := 0; got < len(frames); {
				n, err := b.Receive(in)
				if err != nil {
					t.Fatal(err)
				}
				got += n
				if n == 0 {
					runtime.Gosched()
				}
			}
			a.Errors(errs)
		}); n != 0 {
			t.Errorf("%v allocations for 30 packets", n)
		}
		if b.Stats().ReceiveDrops != 0 {
			t.Error("packets were lost")
		}
	})
}

// TestSinglyKeepsOrder: bursts given to a link that sends singly arrive in order.
func TestSinglyKeepsOrder(t *testing.T) {
	var seen []uint32
	v := variant{cfg: Config{NoSegmentation: true}}
	a, b := v.open(t), v.open(t)
	r := routeTo(t, a, b)
	caps := link.Capabilities{MaxSegments: 64, MaxBurst: 65000} // bursts that this link does not offer
	sendAll(t, a, packets(r, caps, payloadsOf(20, 100)...))
	for _, p := range receiveN(t, b, 20) {
		seen = append(seen, binary.BigEndian.Uint32(p.Data[8:]))
	}
	if !slices.IsSorted(seen) {
		t.Errorf("the packets arrived in the order %v", seen)
	}
}

// TestCutBurst: a burst that its sender hands over in parts arrives whole. What follows the cut is sent singly,
// because it would not get its segment numbers as identifications.
func TestCutBurst(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		frames := packets(routeTo(t, a, b), a.Capabilities(), payloadsOf(10, 200)...)
		sendAll(t, a, frames[:3])
		before := a.Stats().SentBursts
		sendAll(t, a, frames[3:])
		if got := a.Stats().SentBursts - before; got != 7 {
			t.Errorf("the 7 packets after the cut were sent in %d bursts, want 7", got)
		}
		for i, p := range receiveN(t, b, 10) {
			if !bytes.Equal(p.Data, packetBytes(&frames[i])) {
				t.Fatalf("packet %d differs", i)
			}
		}
	})
}

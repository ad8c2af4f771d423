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

	"go.uber.org/goleak"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What is sent arrives, in order, whole, with its sender's address.
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
					if !bytes.Equal(p.data, packetBytes(&frames[i])) {
						t.Fatalf("packet %d of %d differs: %d bytes for %d", i, len(all), len(p.data), frames[i].Len())
					}
					if p.in.Src != a.Status().Addr.Addr() || p.in.SrcPort != r.SrcPort || p.in.Dst != b.Status().Addr.Addr() {
						t.Fatalf("packet %d: from %v:%d to %v", i, p.in.Src, p.in.SrcPort, p.in.Dst)
					}
					if b.Status().Coalescing && a.Status().Segmentation && p.in.Segment != frames[i].Segment {
						t.Fatalf("packet %d is segment %d, was sent as %d", i, p.in.Segment, frames[i].Segment)
					}
				}
			})
		}
		s, rs := a.Stats(), b.Stats()
		if s.SentPackets != rs.ReceivedPackets || s.SentBytes != rs.ReceivedBytes || s.SendErrors != 0 || rs.ReceiveDrops != 0 {
			t.Errorf("sent %+v, received %+v", s, rs)
		}
		if a.Status().Segmentation && s.SentBursts >= s.SentPackets/2 {
			t.Errorf("%d packets left in %d bursts", s.SentPackets, s.SentBursts)
		}
	})
}

// A burst that is longer than the receiver's array comes in parts, nothing lost between.
func TestReceiveInParts(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		frames := packets(routeTo(t, a, b), a.Capabilities(), payloadsOf(60, 900)...)
		sendAll(t, a, frames)
		in := make([]frame.In, 1)
		deadline := time.Now().Add(10 * time.Second)
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
			t.Errorf("into nothing: %d, %v", n, err)
		}
	})
}

// DSCP, ECN and the hop limit leave with each burst and are seen where it arrives
// (RFC 2474, RFC 3168).
func TestTrafficClassAndHopLimit(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		if v.cfg.Portable {
			t.Skip("the sockets of package net do not show them")
		}
		a, b := v.open(t), v.open(t)
		r := routeTo(t, a, b)
		for _, c := range []struct{ class, hops, wantHops uint8 }{
			{0, 0, 64}, {26<<2 | 2, 0, 64}, {26<<2 | 3, 1, 1}, {0, 64, 64}, {0xff, 255, 255}, {0, 0, 64},
		} {
			r.TrafficClass, r.HopLimit = c.class, c.hops
			sendAll(t, a, packets(r, a.Capabilities(), payloadsOf(5, 64)...))
			for _, p := range receiveN(t, b, 5) {
				if p.in.TrafficClass != c.class || p.in.HopLimit != c.wantHops {
					t.Errorf("sent class %#x hops %d, got %#x and %d", c.class, c.hops, p.in.TrafficClass, p.in.HopLimit)
				}
			}
		}
	})
}

// Frames of several routes, sockets and lengths in one call keep their order by route.
func TestMixedRoutes(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b, c := v.open(t), v.open(t), v.open(t)
		toB, toC := routeTo(t, a, b), routeTo(t, a, c)
		other := &frame.Route{Dst: toB.Dst, DstPort: toB.DstPort, SrcPort: randomPort() | 0xc000}
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
				at := netip.AddrPortFrom(p.in.Dst, l.Status().Addr.Port()^p.in.SrcPort)
				if len(want[at]) == 0 || !bytes.Equal(want[at][0], p.data) {
					t.Fatalf("at %v: not the next packet", at)
				}
				want[at] = want[at][1:]
			}
		}
	})
}

// Whatever else is on the port costs nothing but itself: empty datagrams, short ones, and
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
				if _, err := conn.Write(make([]byte, n)); err != nil && !errors.Is(err, syscall.ENOBUFS) && !errors.Is(err, syscall.EMSGSIZE) {
					t.Fatal(n, err)
				}
			}
			drainNow(t, b, 4)
		}
		conn.Write([]byte("the last"))
		in := make([]frame.In, 64)
		deadline := time.Now().Add(10 * time.Second)
		for seen := false; !seen; {
			n, err := b.Receive(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range in[:n] {
				if len(p.Data) == 0 || len(p.Data) > maxDatagram {
					t.Fatalf("a packet of %d bytes", len(p.Data))
				}
				seen = seen || string(p.Data) == "the last"
			}
			if time.Now().After(deadline) {
				t.Fatal("the link died")
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

// The source port of a route is one of the pool, chosen by the one that was computed.
func TestSourcePortPool(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		v.cfg.SourcePorts = 4
		a, b := v.open(t), v.open(t)
		to := b.Status().Addr
		byComputed := map[uint16]uint16{}
		for i := range 64 {
			computed := 0xc000 | uint16(i*37)
			r := &frame.Route{Dst: to.Addr(), DstPort: to.Port(), SrcPort: computed}
			if err := a.Prepare(r); err != nil {
				t.Fatal(err)
			}
			if was, ok := byComputed[computed%4]; ok && was != r.SrcPort {
				t.Fatalf("computed port %d is sent from %d, others of its slot from %d", computed, r.SrcPort, was)
			}
			byComputed[computed%4] = r.SrcPort
			sendAll(t, a, packets(r, a.Capabilities(), payloadsOf(1, 10)...))
			if p := receiveN(t, b, 1)[0]; p.in.SrcPort != r.SrcPort {
				t.Fatalf("packet came from port %d, the route says %d", p.in.SrcPort, r.SrcPort)
			}
		}
		s := a.Status()
		if len(s.BoundSourcePorts) != 4 || s.SourcePorts != "pool of 4" {
			t.Errorf("status: %+v", s)
		}
	})
}

// Ports in use are skipped; the one sent from has the same place in the pool.
func TestSourcePortInUseIsSkipped(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		taken, err := net.ListenUDP("udp", &net.UDPAddr{IP: a.Status().Addr.Addr().AsSlice()})
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		want := uint16(taken.LocalAddr().(*net.UDPAddr).Port)
		r := &frame.Route{Dst: b.Status().Addr.Addr(), DstPort: b.Status().Addr.Port(), SrcPort: want}
		if err := a.Prepare(r); err != nil {
			t.Fatal(err)
		}
		if r.SrcPort == want || r.SrcPort%DefaultSourcePorts != want%DefaultSourcePorts || r.SrcPort < 0xc000 {
			t.Errorf("sends from %d instead of %d", r.SrcPort, want)
		}
		if a.Status().SkippedSourcePorts == 0 {
			t.Error("no skipped port in the status")
		}
		sendAll(t, a, packets(r, a.Capabilities(), payloadsOf(1, 10)...))
		if p := receiveN(t, b, 1)[0]; p.in.SrcPort != r.SrcPort {
			t.Errorf("came from %d, the route says %d", p.in.SrcPort, r.SrcPort)
		}
	})
}

func TestSourcePortRules(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		b := v.open(t)
		to := b.Status().Addr
		prepare := func(l Link, port uint16) uint16 {
			r := &frame.Route{Dst: to.Addr(), DstPort: to.Port(), SrcPort: port}
			if err := l.Prepare(r); err != nil {
				t.Fatal(err)
			}
			return r.SrcPort
		}
		v.cfg.ExactSourcePorts = true
		exact := v.open(t)
		ports := []uint16{0xc001, 0xd001, 0xe001, 0xc001}
		for _, p := range ports {
			if got := prepare(exact, p); got != p {
				t.Errorf("exact %d is sent from %d", p, got)
			}
		}
		if s := exact.Status(); s.SourcePorts != "exact" || !slices.Equal(s.BoundSourcePorts, ports[:3]) {
			t.Errorf("status: %+v", s)
		}
		v.cfg = Config{Portable: v.cfg.Portable, SourcePorts: -1}
		own := v.open(t)
		if got := prepare(own, 0xc001); got != own.Status().Addr.Port() {
			t.Errorf("without a pool, %d is sent from %d", 0xc001, got)
		}
		if got := prepare(exact, 0); got != exact.Status().Addr.Port() {
			t.Errorf("a route without a source port is sent from %d", got)
		}
	})
}

// What is sent to a port of the pool goes nowhere, and nothing is answered.
func TestArrivalsAtSourcePortsAreDropped(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		r := &frame.Route{Dst: b.Status().Addr.Addr(), DstPort: b.Status().Addr.Port(), SrcPort: 0xc123}
		if err := a.Prepare(r); err != nil {
			t.Fatal(err)
		}
		back := &frame.Route{Dst: a.Status().Addr.Addr(), DstPort: r.SrcPort}
		if err := b.Prepare(back); err != nil {
			t.Fatal(err)
		}
		frames := packets(back, b.Capabilities(), payloadsOf(40, 1000)...)
		errs := make([]link.Unreachable, 4)
		for range 20 {
			sendAll(t, b, frames)
			if n := a.Errors(errs); n != 0 {
				t.Fatalf("errors: %v", errs[:n])
			}
		}
		if n := receiveSome(t, a); n != 0 {
			t.Errorf("%d packets to the source port arrived", n)
		}
		if n := b.Errors(errs); n != 0 {
			t.Errorf("errors: %v", errs[:n])
		}
	})
}

func TestMulticast(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		if v.cfg.Portable {
			l := v.open(t)
			if err := l.Join(netip.MustParseAddr("239.77.1.2")); !errors.Is(err, link.ErrNoMulticast) {
				t.Errorf("joined: %v", err)
			}
			return
		}
		v.cfg.Port = randomPort() // one port, as groups need
		if v.v6 {
			t.Skip("one port of [::1] has room for one link; see the namespaces' test")
		}
		if runtime.GOOS != "linux" {
			t.Skip("needs several loopback addresses")
		}
		a, b, c := v.open(t), v.open(t), v.open(t)
		group := netip.MustParseAddr("239.77.1.2")
		for range 2 {
			if err := b.Join(group); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Join(group); err != nil {
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
					if p.in.Dst != group || p.in.Src != a.Status().Addr.Addr() || !bytes.Equal(p.data, packetBytes(&frames[i])) {
						t.Fatalf("packet %d: from %v to %v", i, p.in.Src, p.in.Dst)
					}
				}
			}
		}
		exchange(b, c)
		if err := b.Leave(group); err != nil {
			t.Fatal(err)
		}
		exchange(b, c) // joined twice, left once
		if err := b.Leave(group); err != nil {
			t.Fatal(err)
		}
		exchange(c)
		if n := receiveSome(t, b); n != 0 {
			t.Errorf("%d packets after leaving", n)
		}
		if b.Leave(group) == nil {
			t.Error("left a group that was not joined")
		}
		if b.Join(netip.MustParseAddr("10.0.0.1")) == nil {
			t.Error("joined a unicast address")
		}
	})
}

func TestAddressInUse(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a := v.open(t)
		cfg := v.cfg
		cfg.Addr, cfg.Port = a.Status().Addr.Addr(), a.Status().Addr.Port()
		_, err := Open(cfg)
		var in *AddressInUseError
		if !errors.As(err, &in) || !errors.Is(err, syscall.EADDRINUSE) || in.Addr != a.Status().Addr {
			t.Fatalf("error is %v", err)
		}
		if runtime.GOOS == "linux" && in.Owner.PID != syscall.Getpid() {
			t.Errorf("owner is %+v: %v", in.Owner, err)
		}
	})
}

func TestConfigErrors(t *testing.T) {
	good := netip.MustParseAddr("127.0.0.1")
	for _, c := range []struct {
		cfg   Config
		field string
	}{
		{Config{}, "Addr"},
		{Config{Addr: netip.IPv4Unspecified()}, "Addr"},
		{Config{Addr: netip.MustParseAddr("ff02::1")}, "Addr"},
		{Config{Addr: good, SourcePorts: 256}, "SourcePorts"},
		{Config{Addr: good, ReceiveBuffer: -1}, "ReceiveBuffer"},
		{Config{Addr: good, Batch: 65}, "Batch"},
	} {
		_, err := Open(c.cfg)
		var fe *FieldError
		if !errors.As(err, &fe) || fe.Field != c.field {
			t.Errorf("%+v: %v, want an error of %s", c.cfg, err, c.field)
		}
	}
	if _, err := Open(Config{Addr: netip.MustParseAddr("192.0.2.77")}); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("an address of another host: %v", err)
	}
}

func TestPrepareErrors(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a := v.open(t)
		other := netip.IPv6Loopback()
		if v.v6 {
			other = netip.MustParseAddr("127.0.0.1")
		}
		for _, dst := range []netip.Addr{{}, other, netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
			if err := a.Prepare(&frame.Route{Dst: dst}); err == nil {
				t.Errorf("destination %v was accepted", dst)
			}
		}
		// An unusable route costs its own packets.
		frames := packets(&frame.Route{Dst: other}, a.Capabilities(), payloadsOf(3, 10)...)
		if n, err := a.Send(frames); n != 3 || err != nil || a.Stats().SendErrors != 3 {
			t.Errorf("sent %d, %v, %d errors", n, err, a.Stats().SendErrors)
		}
	})
}

// After Close everything answers net.ErrClosed, and closing again is no error.
func TestClosed(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		r := routeTo(t, a, b)
		frames := packets(r, a.Capabilities(), payloadsOf(1, 10)...)
		for range 2 {
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Send(frames); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Send: %v", err)
		}
		if _, err := a.Receive(make([]frame.In, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Receive: %v", err)
		}
		if err := a.Prepare(r); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Prepare: %v", err)
		}
		if n := a.Errors(make([]link.Unreachable, 1)); n != 0 {
			t.Errorf("Errors: %d", n)
		}
		a.Stats()
	})
}

// Close may come while the owner is sending and receiving.
func TestCloseWhileBusy(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		for range 20 {
			a, b := v.open(t), v.open(t)
			frames := packets(routeTo(t, a, b), a.Capabilities(), payloadsOf(8, 500)...)
			stopped := make(chan error, 1)
			go func() {
				in := make([]frame.In, 16)
				for {
					if _, err := a.Send(frames); err != nil {
						stopped <- err
						return
					}
					if _, err := a.Receive(in); err != nil {
						stopped <- err
						return
					}
				}
			}()
			receiveN(t, b, 8)
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-stopped; !errors.Is(err, net.ErrClosed) {
				t.Fatal(err)
			}
		}
	})
}

// Notify is called when packets have arrived where none were waiting.
func TestNotify(t *testing.T) {
	notes := make(chan struct{}, 1)
	v := variant{cfg: Config{Portable: true, Notify: func() {
		select {
		case notes <- struct{}{}:
		default:
		}
	}}}
	b := v.open(t)
	v.cfg.Notify = nil
	a := v.open(t)
	if d := b.Descriptors(); d != nil {
		t.Errorf("descriptors %v", d)
	}
	for range 10 {
		sendAll(t, a, packets(routeTo(t, a, b), a.Capabilities(), payloadsOf(1, 10)...))
		<-notes
		if n := receiveSome(t, b); n != 1 {
			t.Fatalf("%d packets after the note", n)
		}
	}
}

func TestPathMTU(t *testing.T) {
	for _, c := range []struct{ link, want int }{
		{65536, 4096}, {9000, 4096}, {4200, 4096}, {4180, 4096}, {4179, 2048}, {2200, 2048}, {1500, 1024},
		{1400, 1024}, {1108, 1024}, {1107, 512}, {576, 256}, {340, 256}, {339, 0}, {0, 0}, {-1, 0},
	} {
		if got := PathMTU(c.link); got != c.want {
			t.Errorf("link MTU %d: %d, want %d", c.link, got, c.want)
		}
	}
}

func TestInterfaceOf(t *testing.T) {
	ifi, ok := InterfaceOf(netip.MustParseAddr("127.0.0.1"))
	if !ok || ifi.Flags&net.FlagLoopback == 0 {
		t.Errorf("127.0.0.1 is held by %v", ifi.Name)
	}
	if runtime.GOOS == "linux" {
		if ifi, ok := InterfaceOf(netip.MustParseAddr("127.200.3.4")); !ok || ifi.Flags&net.FlagLoopback == 0 {
			t.Errorf("127.200.3.4 is held by %v", ifi.Name)
		}
	}
	if ifi, ok := InterfaceOf(netip.MustParseAddr("192.0.2.77")); ok {
		t.Errorf("192.0.2.77 is held by %v", ifi.Name)
	}
}

// The data path allocates nothing.
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

// The receiver's socket buffer is what was asked for, and what it drops is counted.
func TestReceiveBuffer(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a := v.open(t)
		v.cfg.ReceiveBuffer = 212992
		b := v.open(t)
		if got := b.Stats().ReceiveBuffer; got < 212992 || got > 2*212992 {
			t.Errorf("buffer is %d", got)
		}
		if v.cfg.Portable {
			return // its reader empties the buffer all the time
		}
		frames := packets(routeTo(t, a, b), a.Capabilities(), payloadsOf(100, 4096)...)
		for range 10 {
			sendAll(t, a, frames)
		}
		if b.Stats().ReceiveDrops == 0 {
			t.Error("4 MB fitted, or no drops were counted")
		}
	})
}

// The flag in a route that sends it singly does not disturb its address.
func TestSinglyKeepsOrder(t *testing.T) {
	var seen []uint32
	v := variant{cfg: Config{NoSegmentation: true}}
	a, b := v.open(t), v.open(t)
	r := routeTo(t, a, b)
	caps := link.Capabilities{MaxSegments: 64, MaxBurst: 65000} // bursts that this link was not asked for
	sendAll(t, a, packets(r, caps, payloadsOf(20, 100)...))
	for _, p := range receiveN(t, b, 20) {
		seen = append(seen, binary.BigEndian.Uint32(p.data[8:]))
	}
	if !slices.IsSorted(seen) {
		t.Errorf("order: %v", seen)
	}
}

// A burst that its sender hands over in parts arrives whole: what follows the cut leaves
// singly, since it would not get its segments' numbers as identifications.
func TestCutBurst(t *testing.T) {
	each(t, func(t *testing.T, v variant) {
		a, b := v.open(t), v.open(t)
		frames := packets(routeTo(t, a, b), a.Capabilities(), payloadsOf(10, 200)...)
		sendAll(t, a, frames[:3])
		before := a.Stats().SentBursts
		sendAll(t, a, frames[3:])
		if got := a.Stats().SentBursts - before; got != 7 {
			t.Errorf("the 7 packets after the cut left in %d bursts", got)
		}
		for i, p := range receiveN(t, b, 10) {
			if !bytes.Equal(p.data, packetBytes(&frames[i])) {
				t.Fatalf("packet %d differs", i)
			}
		}
	})
}

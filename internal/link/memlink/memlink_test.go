package memlink

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/testbed/leaks"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var (
	addrA  = netip.MustParseAddr("10.0.0.1")
	addrB  = netip.MustParseAddr("10.0.0.2")
	addrC  = netip.MustParseAddr("10.0.0.3")
	group  = netip.MustParseAddr("239.1.1.1")
	sameIP = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
)

func pair(t testing.TB, queue int) (*Port, *Port) {
	t.Helper()
	a, b, err := Pair(PortConfig{Addr: addrA}, PortConfig{Addr: addrB, Queue: queue})
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

func to(t testing.TB, p *Port, dst netip.Addr) *frame.Route {
	t.Helper()
	r := &frame.Route{Dst: dst}
	if err := p.Prepare(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// numbered returns n frames with the numbers from first on and payloads of length bytes.
func numbered(r *frame.Route, first, n, length int) []frame.Out {
	frames := make([]frame.Out, n)
	for i := range frames {
		o := &frames[i]
		o.Reset(r)
		o.HeadEnd += 12
		o.Head[frame.HeadRoom+7] = 9 // destination QP
		binary.BigEndian.PutUint32(o.Head[frame.HeadRoom+8:], uint32(first+i))
		o.Payload = bytes.Repeat([]byte{byte(first + i)}, length)
		o.TailLen = 4
		o.Segment = uint16(i % 64)
	}
	return frames
}

func number(p frame.In) int { return int(binary.BigEndian.Uint32(p.Data[8:])) }

func TestPacketsArriveWhole(t *testing.T) {
	a, b := pair(t, 0)
	r := to(t, a, addrB)
	r.TrafficClass, r.FlowLabel = 0x6a, 77
	frames := numbered(r, 0, 100, 1000)
	if n, err := a.Send(frames); n != 100 || err != nil {
		t.Fatal(n, err)
	}
	in := make([]frame.In, 128)
	n, err := b.Receive(in)
	if n != 100 || err != nil {
		t.Fatal(n, err)
	}
	for i, p := range in[:n] {
		want := frame.In{Src: addrA, Dst: addrB, SrcPort: 4791, TrafficClass: 0x6a, HopLimit: frame.DefaultHopLimit, FlowLabel: 77,
			Segment: uint16(i % 64)}
		want.Data = append(append(append([]byte{}, frames[i].Head[frame.HeadRoom:frames[i].HeadEnd]...), frames[i].Payload...), 0, 0, 0, 0)
		if d := cmp.Diff(want, p, sameIP); d != "" {
			t.Fatalf("packet %d: %s", i, d)
		}
	}
	if s, rs := a.Stats(), b.Stats(); s.SentPackets != 100 || s.SentBursts != 2 || rs.ReceivedPackets != 100 ||
		s.SentBytes != rs.ReceivedBytes {
		t.Errorf("stats %+v, %+v", s, rs)
	}
}

// TestQueueProperties: received data stays unchanged until the next Receive, whatever is sent meanwhile. Packets that
// find no room are dropped and counted, and the rest arrives in order.
func TestQueueProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(1, 12).Draw(rt, "queue")
		a, b := pair(t, size)
		r := to(t, a, addrB)
		var waiting, held []int
		var shown []frame.In
		next, dropped := 0, 0
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if rapid.Bool().Draw(rt, "send") {
				n := rapid.IntRange(1, 8).Draw(rt, "packets")
				a.Send(numbered(r, next, n, 8))
				for range n {
					if len(waiting)+len(held) < size {
						waiting = append(waiting, next)
					} else {
						dropped++
					}
					next++
				}
			} else {
				in := make([]frame.In, rapid.IntRange(0, 8).Draw(rt, "room"))
				n, err := b.Receive(in)
				if err != nil || n != min(len(in), len(waiting)) {
					rt.Fatalf("received %d of %d: %v", n, len(waiting), err)
				}
				held, waiting = waiting[:n:n], waiting[n:]
				shown = in[:n]
			}
			for i, p := range shown {
				if number(p) != held[i] {
					rt.Fatalf("packet %d became %d", held[i], number(p))
				}
			}
		}
		if b.Stats().ReceiveDrops != uint64(dropped) {
			rt.Fatalf("%d drops counted of %d", b.Stats().ReceiveDrops, dropped)
		}
	})
}

func TestUnknownDestinationIsUnreachable(t *testing.T) {
	a, b := pair(t, 0)
	check := func(dst netip.Addr) {
		t.Helper()
		a.Send(numbered(to(t, a, dst), 0, 3, 8))
		out := make([]link.Unreachable, 4)
		want := []link.Unreachable{{Dst: dst, Kind: link.HostUnreachable, QPN: 9}}
		if d := cmp.Diff(want, out[:a.Errors(out)], sameIP); d != "" {
			t.Error("(-want +got):\n", d)
		}
		if n := a.Errors(out); n != 0 {
			t.Errorf("%d errors after all were taken, want none", n)
		}
	}
	check(addrC)
	b.Close()
	check(addrB)
	// Beyond a bound errors are counted and not kept.
	r := to(t, a, addrC)
	for range maxErrors + 5 {
		a.Send(numbered(r, 0, 1, 8))
	}
	if n := a.Errors(make([]link.Unreachable, 200)); n != maxErrors || a.Stats().ErrorsLost != 5 {
		t.Errorf("%d errors, %d lost; want %d and 5", n, a.Stats().ErrorsLost, maxErrors)
	}
}

func TestTooLongPacketsAreRefused(t *testing.T) {
	a, b, err := Pair(PortConfig{Addr: addrA, MTU: 1500}, PortConfig{Addr: addrB})
	if err != nil {
		t.Fatal(err)
	}
	r := to(t, a, addrB)
	a.Send(numbered(r, 0, 1, 1500-28-16))
	a.Send(numbered(r, 1, 1, 1500-28-16+1))
	in := make([]frame.In, 4)
	if n, _ := b.Receive(in); n != 1 || number(in[0]) != 0 {
		t.Errorf("%d packets arrived, want only the short one", n)
	}
	out := make([]link.Unreachable, 4)
	want := []link.Unreachable{{Dst: addrB, Kind: link.PacketTooBig, QPN: 9, MTU: 1500}}
	if d := cmp.Diff(want, out[:a.Errors(out)], sameIP); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

func TestGroups(t *testing.T) {
	s := NewSwitch()
	var ports []*Port
	for _, addr := range []netip.Addr{addrA, addrB, addrC} {
		p, err := s.Port(PortConfig{Addr: addr})
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, p)
	}
	a, b, c := ports[0], ports[1], ports[2]
	in := make([]frame.In, 8)
	expect := func(p *Port, want int) {
		t.Helper()
		if n, _ := p.Receive(in); n != want || n > 0 && in[0].Dst != group {
			t.Errorf("%v received %d, want %d", p.cfg.Addr, n, want)
		}
	}
	r := to(t, a, group)
	a.Send(numbered(r, 0, 1, 8)) // to nobody: that is no error
	b.Join(group)
	b.Join(group)
	c.Join(group)
	a.Send(numbered(r, 0, 2, 8))
	expect(b, 2)
	expect(c, 2)
	b.Leave(group)
	c.Leave(group)
	a.Send(numbered(r, 0, 1, 8))
	expect(b, 1)
	expect(c, 0)
	b.Close()
	a.Send(numbered(r, 0, 1, 8))
	if a.Stats().SendErrors != 0 || len(s.groups) != 0 {
		t.Errorf("%d errors and %d groups, want none", a.Stats().SendErrors, len(s.groups))
	}
	if c.Leave(group) == nil || c.Join(addrA) == nil || c.Join(netip.MustParseAddr("ff02::1")) == nil {
		t.Error("a wrong group was accepted")
	}
}

func TestConfigErrors(t *testing.T) {
	s := NewSwitch()
	for _, c := range []PortConfig{{}, {Addr: group}, {Addr: addrA, Queue: -1}, {Addr: addrA, Queue: 1 << 21}, {Addr: addrA, MTU: 100},
		{Addr: addrA, MTU: 70000}} {
		if _, err := s.Port(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	if _, err := s.Port(PortConfig{Addr: addrA}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Port(PortConfig{Addr: addrA}); !errors.Is(err, errAddressInUse) {
		t.Errorf("a second port at the address: %v", err)
	}
}

func TestClosed(t *testing.T) {
	a, b := pair(t, 0)
	r := to(t, a, addrB)
	a.Close()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if _, err := a.Send(numbered(r, 0, 1, 8)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Send: %v, want %v", err, net.ErrClosed)
	}
	if _, err := a.Receive(make([]frame.In, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Receive: %v, want %v", err, net.ErrClosed)
	}
	if _, err := a.net.Port(PortConfig{Addr: addrA}); err != nil {
		t.Errorf("the address is still taken: %v", err)
	}
	b.Close()
}

func TestNotifyOncePerBatchOfNews(t *testing.T) {
	notes := 0
	a, b, err := Pair(PortConfig{Addr: addrA}, PortConfig{Addr: addrB, Notify: func() { notes++ }})
	if err != nil {
		t.Fatal(err)
	}
	r := to(t, a, addrB)
	for want := 1; want <= 3; want++ {
		a.Send(numbered(r, 0, 5, 8))
		a.Send(numbered(r, 5, 5, 8))
		if notes != want {
			t.Fatalf("Notify was called %d times, want %d", notes, want)
		}
		b.Receive(make([]frame.In, 10))
	}
}

// TestManySenders: ports belong to loops of their own; with many senders at a time the one receiver gets each
// sender's packets in order.
func TestManySenders(t *testing.T) {
	s := NewSwitch()
	dst, err := s.Port(PortConfig{Addr: addrB, Queue: 1 << 12})
	if err != nil {
		t.Fatal(err)
	}
	var senders sync.WaitGroup
	const each, count = 500, 4
	for i := range count {
		p, err := s.Port(PortConfig{Addr: netip.AddrFrom4([4]byte{10, 1, 0, byte(1 + i)})})
		if err != nil {
			t.Fatal(err)
		}
		r := to(t, p, addrB)
		senders.Go(func() {
			for k := range each {
				p.Send(numbered(r, k, 1, 8))
			}
		})
	}
	next := map[netip.Addr]int{}
	in := make([]frame.In, 32)
	take := func() int {
		n, _ := dst.Receive(in)
		for _, p := range in[:n] {
			if number(p) != next[p.Src] {
				t.Fatalf("%v: packet %d, want %d", p.Src, number(p), next[p.Src])
			}
			next[p.Src]++
		}
		return n
	}
	for range 100 {
		take()
	}
	senders.Wait()
	for take() > 0 {
	}
	for src, n := range next {
		if n != each {
			t.Errorf("%d packets of %v, want %d", n, src, each)
		}
	}
	if len(next) != count {
		t.Errorf("packets of %d senders, want %d", len(next), count)
	}
}

func TestNothingAllocated(t *testing.T) {
	a, b := pair(t, 0)
	frames := numbered(to(t, a, addrB), 0, 32, 1024)
	in := make([]frame.In, 64)
	if n := testing.AllocsPerRun(100, func() {
		a.Send(frames)
		b.Receive(in)
	}); n != 0 {
		t.Errorf("%v allocations per batch, want none", n)
	}
}

func BenchmarkPair(b *testing.B) {
	from, to2 := pair(b, 0)
	frames := numbered(to(b, from, addrB), 0, 32, 4096)
	in := make([]frame.In, 64)
	b.SetBytes(32 * 4096)
	b.ReportAllocs()
	for b.Loop() {
		from.Send(frames)
		to2.Receive(in)
	}
}

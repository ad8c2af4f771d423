package sim

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/impair"
)

// talker sends numbered packets, one each microsecond, and records what arrives.
type talker struct {
	route     *frame.Route
	next, end int
	due       clock.Time
	got       []int
	log       strings.Builder
	marked    int
	deaf      bool // it records nothing
	now       clock.Time
}

func (k *talker) Receive(now clock.Time, in []frame.In) {
	if k.deaf {
		return
	}
	for i := range in {
		if in[i].TrafficClass&3 == 3 {
			k.marked++
		}
		n := int(in[i].Data[0]) | int(in[i].Data[1])<<8
		k.got = append(k.got, n)
		fmt.Fprintf(&k.log, "%d %d %v\n", now, n, in[i].Src)
	}
}

func (k *talker) Advance(now clock.Time) { k.now = now }

func (k *talker) Transmit(now clock.Time, out []frame.Out) int {
	if k.next == k.end || now < k.due {
		return 0
	}
	k.due = now + 1000
	out[0].Reset(k.route)
	out[0].Head[frame.HeadRoom], out[0].Head[frame.HeadRoom+1] = byte(k.next), byte(k.next>>8)
	out[0].HeadEnd = frame.HeadRoom + 2
	k.next++
	return 1
}

func (k *talker) Deadline() clock.Time {
	if k.next == k.end {
		return clock.Never
	}
	return k.due
}

func run(seed uint64, count int, i impair.Impairment) (*Network, *talker) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	n := New(seed)
	from, to := &talker{route: &frame.Route{Src: a, Dst: b}, end: count}, &talker{}
	n.Link(n.Add(a, from), n.Add(b, to)).Set(i)
	n.Run(clock.Never-1, nil)
	return n, to
}

// With a delay and jitter alone everything arrives once, in order, after the delay.
func TestPlain(t *testing.T) {
	n, to := run(1, 100, impair.Impairment{Delay: 5 * time.Microsecond, Jitter: 3 * time.Microsecond})
	for i, v := range to.got {
		if v != i {
			t.Fatalf("packet %d arrives as number %d", v, i)
		}
	}
	if len(to.got) != 100 || n.Stats.Delivered != 100 || n.Now() < 101_000 || n.Now() > 107_000 {
		t.Errorf("%d packets, %+v, until %d; want 100, until 101 to 107 us", len(to.got), n.Stats, n.Now())
	}
}

// Each fault happens about as often as asked for and does what its name says.
func TestFaults(t *testing.T) {
	const count = 10000
	near := func(what string, got uint64, p float64) {
		t.Helper()
		if want := p * count; float64(got) < want*0.8 || float64(got) > want*1.2 {
			t.Errorf("%s: %d of %d, want about %v", what, got, count, want)
		}
	}
	n, to := run(2, count, impair.Impairment{Loss: 0.05, Delay: time.Microsecond})
	near("lost", n.Stats.Lost, 0.05)
	if len(to.got) != count-int(n.Stats.Lost) {
		t.Errorf("%d packets arrive and %d are lost, of %d", len(to.got), n.Stats.Lost, count)
	}
	n, to = run(3, count, impair.Impairment{Duplicate: 0.05, Delay: time.Microsecond})
	near("duplicated", n.Stats.Duplicated, 0.05)
	if len(to.got) != count+int(n.Stats.Duplicated) {
		t.Errorf("%d packets arrive and %d are duplicated, of %d", len(to.got), n.Stats.Duplicated, count)
	}
	n, to = run(4, count, impair.Impairment{Corrupt: 0.05, Delay: time.Microsecond})
	near("corrupted", n.Stats.Corrupted, 0.05)
	if len(to.got) != count-int(n.Stats.Corrupted) {
		t.Errorf("%d packets arrive and %d are corrupted, of %d", len(to.got), n.Stats.Corrupted, count)
	}
	n, to = run(5, count, impair.Impairment{Reorder: 0.05, Delay: 3 * time.Microsecond})
	near("reordered", n.Stats.Reordered, 0.05)
	late := 0
	for i := 1; i < len(to.got); i++ {
		if to.got[i] < to.got[i-1] {
			late++
		}
	}
	if late == 0 || len(to.got) != count {
		t.Errorf("%d of %d packets are out of order; want some, of %d", late, len(to.got), count)
	}
}

// A run depends on its seed alone: the same seed gives the same run, and another seed another.
func TestSeed(t *testing.T) {
	all := impair.Impairment{Loss: 0.02, Duplicate: 0.02, Reorder: 0.02, Delay: 2 * time.Microsecond, Jitter: 2 * time.Microsecond}
	_, a := run(7, 500, all)
	_, b := run(7, 500, all)
	_, c := run(8, 500, all)
	if a.log.String() != b.log.String() {
		t.Error("two runs with one seed differ")
	}
	if a.log.String() == c.log.String() {
		t.Error("runs with two seeds are the same")
	}
}

// A link with a rate passes packets at that rate and no faster; what its queue has no room for is dropped.
func TestRate_LimitsALink(t *testing.T) {
	wire := impair.WireLength(2+4, netip.MustParseAddr("10.0.0.2"))
	gap := time.Duration(wire) * 8 * 100 // at 10 Mb/s
	n, to := run(1, 100, impair.Impairment{Rate: 10e6})
	if want := clock.Time(100 * gap); len(to.got) != 100 || n.Now() != want {
		t.Errorf("%d packets until %v, want 100 until %v", len(to.got), n.Now(), want)
	}
	n = New(1)
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	from, to := &talker{route: &frame.Route{Src: a, Dst: b}, end: 1000}, &talker{}
	l := n.Link(n.Add(a, from), n.Add(b, to))
	l.Set(impair.Impairment{Rate: 10e6})
	l.Queue = 10 * wire
	n.Run(clock.Never-1, nil)
	passed := int(time.Millisecond/gap) + 10
	if got := len(to.got); got < passed-1 || got > passed+1 || n.Stats.Overflowed != uint64(1000-got) {
		t.Errorf("%d packets passed and %d had no room, want %d of 1000 passed", got, n.Stats.Overflowed, passed)
	}
}

// A port whose own wire is slow is not asked for more than it takes, and loses nothing.
func TestRate_HoldsAPortBack(t *testing.T) {
	n := New(1)
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	from, to := &talker{route: &frame.Route{Src: a, Dst: b}, end: 100}, &talker{}
	p := n.Add(a, from)
	p.Rate = 10e6
	n.Add(b, to)
	gap := time.Duration(impair.WireLength(2+4, b)) * 8 * 100
	n.Pass(50 * gap)
	if from.next < 50 || from.next > 51 {
		t.Errorf("%d packets were asked for in the time of 50", from.next)
	}
	n.Run(clock.Never-1, nil)
	if len(to.got) != 100 || n.Now() != clock.Time(100*gap) {
		t.Errorf("%d packets until %v, want 100 until %v", len(to.got), n.Now(), 100*gap)
	}
}

// A packet that met congestion arrives with its mark, and keeps the rest of its traffic class.
func TestECN_Marks(t *testing.T) {
	n := New(1)
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	to := &talker{}
	l := n.Link(n.Add(a, &talker{route: &frame.Route{Src: a, Dst: b, TrafficClass: 26<<2 | 2}, end: 100}), n.Add(b, to))
	l.Set(impair.Impairment{ECN: 0.5})
	n.Run(clock.Never-1, nil)
	if m := int(n.Stats.Marked); m < 30 || m > 70 || to.marked != m || len(to.got) != 100 {
		t.Errorf("%d of %d packets arrived marked, %d are counted; want about half", to.marked, len(to.got), m)
	}
}

// With a seed of its own a link makes the same choices in any network.
func TestSeed_OfALink(t *testing.T) {
	got := func(seed, network uint64) string {
		n := New(network)
		a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
		to := &talker{}
		n.Link(n.Add(a, &talker{route: &frame.Route{Src: a, Dst: b}, end: 100}), n.Add(b, to)).Set(impair.Impairment{Loss: 0.3, Seed: seed})
		n.Run(clock.Never-1, nil)
		return to.log.String()
	}
	if got(5, 1) != got(5, 2) || got(5, 1) == got(6, 1) || got(0, 1) == got(0, 2) {
		t.Error("the choices do not follow from the link's seed")
	}
}

// Packets of all kinds of fates allocate nothing once the network is in its stride.
func TestImpairedPackets_AllocateNothing(t *testing.T) {
	n := New(1)
	n.Default = impair.Impairment{Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Corrupt: 0.1, ECN: 0.1,
		Delay: 20 * time.Microsecond, Jitter: 10 * time.Microsecond, Rate: 1e9}
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	from, to := &talker{route: &frame.Route{Src: a, Dst: b}, end: 1 << 40}, &talker{deaf: true}
	n.Add(a, from)
	n.Add(b, to)
	n.Pass(20 * time.Millisecond)
	if x := testing.AllocsPerRun(10, func() { n.Pass(time.Millisecond) }); x != 0 {
		t.Errorf("%v allocations for 1000 packets, want none", x)
	}
}

// A packet to an address that nobody has is counted as unroutable, and one to a group reaches all but its sender.
func TestRouting(t *testing.T) {
	n := New(1)
	group := netip.MustParseAddr("239.0.0.1")
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }
	from, b, c := &talker{end: 3, route: &frame.Route{Src: addr(1), Dst: group}}, &talker{}, &talker{}
	n.Add(addr(1), from)
	n.Add(addr(2), b)
	n.Add(addr(3), c)
	n.Run(clock.Never-1, nil)
	if len(b.got) != 3 || len(c.got) != 3 || len(from.got) != 0 {
		t.Errorf("the sender got %d packets, the others %d and %d; want 0, 3 and 3", len(from.got), len(b.got), len(c.got))
	}
	from.route.Dst, from.end = addr(9), 5
	n.Pass(time.Millisecond)
	if n.Stats.Unroutable != 2 {
		t.Errorf("%d packets are unroutable, want 2", n.Stats.Unroutable)
	}
}

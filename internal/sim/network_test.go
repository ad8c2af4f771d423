package sim

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
)

// talker sends numbered packets, one each microsecond, and records what arrives.
type talker struct {
	route     *frame.Route
	next, end int
	due       clock.Time
	got       []int
	log       strings.Builder
	now       clock.Time
}

func (k *talker) Receive(now clock.Time, in []frame.In) {
	for i := range in {
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
	out[0].Reset(k.route)
	out[0].Head[frame.HeadRoom], out[0].Head[frame.HeadRoom+1] = byte(k.next), byte(k.next>>8)
	out[0].HeadEnd = frame.HeadRoom + 2
	k.next++
	k.due = now + 1000
	return 1
}

func (k *talker) Deadline() clock.Time {
	if k.next == k.end {
		return clock.Never
	}
	return k.due
}

func run(seed uint64, count int, i Impairment) (*Network, *talker) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	n := New(seed)
	from, to := &talker{route: &frame.Route{Src: a, Dst: b}, end: count}, &talker{}
	n.link(n.Add(a, from), n.Add(b, to)).Impairment = i
	n.Run(clock.Never-1, nil)
	return n, to
}

// With a delay and jitter alone everything arrives once, in order, after the delay.
func TestPlain(t *testing.T) {
	n, to := run(1, 100, Impairment{Delay: 5 * time.Microsecond, Jitter: 3 * time.Microsecond})
	for i, v := range to.got {
		if v != i {
			t.Fatalf("packet %d arrives as number %d", v, i)
		}
	}
	if len(to.got) != 100 || n.Stats.Delivered != 100 || n.Now() < 104_000 || n.Now() > 107_000 {
		t.Errorf("%d packets, %+v, until %d; want 100, until 104 to 107 us", len(to.got), n.Stats, n.Now())
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
	n, to := run(2, count, Impairment{Loss: 0.05, Delay: time.Microsecond})
	near("lost", n.Stats.Lost, 0.05)
	if len(to.got) != count-int(n.Stats.Lost) {
		t.Errorf("%d packets arrive and %d are lost, of %d", len(to.got), n.Stats.Lost, count)
	}
	n, to = run(3, count, Impairment{Duplicate: 0.05, Delay: time.Microsecond})
	near("duplicated", n.Stats.Duplicated, 0.05)
	if len(to.got) != count+int(n.Stats.Duplicated) {
		t.Errorf("%d packets arrive and %d are duplicated, of %d", len(to.got), n.Stats.Duplicated, count)
	}
	n, to = run(4, count, Impairment{Corrupt: 0.05, Delay: time.Microsecond})
	near("corrupted", n.Stats.Corrupted, 0.05)
	if len(to.got) != count-int(n.Stats.Corrupted) {
		t.Errorf("%d packets arrive and %d are corrupted, of %d", len(to.got), n.Stats.Corrupted, count)
	}
	n, to = run(5, count, Impairment{Reorder: 0.05, Delay: 3 * time.Microsecond})
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
	all := Impairment{Loss: 0.02, Duplicate: 0.02, Reorder: 0.02, Delay: 2 * time.Microsecond, Jitter: 2 * time.Microsecond}
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

package transport

import (
	"bytes"
	"encoding/hex"
	"math"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport/congestion"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// everything is congestion control for all priorities, with which a queue pair that has got one notification sends at a rate
// until it gets another: nothing raises it.
func everything(rate float64) congestion.Settings {
	return congestion.Settings{React: 0xff, Notify: 0xff, FollowPriority: true, Slack: time.Microsecond, Reaction: congestion.Parameters{
		LineRate: 40000, FirstCNPRate: rate, Threshold: 1, AlphaShift: 11, MinDecrease: 1, ReducePeriod: time.Microsecond,
	}}
}

// controlled returns a flow with congestion control at both ends.
func controlled(t testing.TB, size int, op ring.WROp, s congestion.Settings) *flow {
	f := newFlow(t, 1024, size, op)
	for _, e := range []*Engine{f.a.e, f.b.e} {
		if err := e.SetCongestion(s); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// notice is a congestion notification from the peer of x, as it arrives.
func notice(x *end) frame.In {
	in := frame.In{Src: x.q.route.Dst, Dst: x.q.route.Src, Data: make([]byte, ib.BTHLen+ib.CNPReservedLen)}
	ib.BTH(in.Data[:ib.BTHLen]).Encode(ib.CNP, false, false, 0, 0xffff, ib.QPN(x.q.num), 0)
	return in
}

// TestRate_OfSends: what a queue pair sends leaves at the rate that its notifications leave it, at the times that the engine's
// deadline names, and without a retry: requests of either end's, and responses to reads.
func TestRate_OfSends(t *testing.T) {
	for _, c := range []struct {
		name   string
		op     ring.WROp
		size   int
		source func(f *flow) *end
	}{
		{"writes", ring.OpWrite, 64 << 10, func(f *flow) *end { return f.a }},
		{"small writes", ring.OpWrite, 64, func(f *flow) *end { return f.a }},
		{"reads", ring.OpRead, 64 << 10, func(f *flow) *end { return f.b }},
	} {
		t.Run(c.name, func(t *testing.T) {
			const mbps, messages = 1000, 60
			f := controlled(t, c.size, c.op, everything(mbps))
			from := c.source(f)
			f.now = 1000
			from.e.Receive(f.now, []frame.In{notice(from)})
			if r, limited := from.e.Rate(f.now, from.q); !limited || r.Current != mbps {
				t.Fatalf("the rate is %+v, limited %v", r, limited)
			}
			start, sent, done, posted := f.now, 0, 0, 0
			for done < messages {
				for ; posted < min(done+8, messages); posted++ {
					f.a.post(f.wr)
				}
				for k := 1; k > 0; {
					n := from.turn(f.now, f.w.out)
					for i := range f.w.out[:n] {
						sent += f.w.out[i].Len() + outerLen
					}
					f.w.deliver(f.now, n, other(f, from).host)
					k = n + f.w.carry(f.now, other(f, from).host, from.host)
				}
				if done += f.a.e.Completions(f.comps[:]); done == messages {
					break
				}
				if posted < min(done+8, messages) {
					continue
				}
				due := clock.Min(f.a.e.Deadline(), f.b.e.Deadline())
				if due <= f.now || due > f.now.Add(10*time.Millisecond) {
					t.Fatalf("at %v with %d of %d done the next turn is at %v", f.now.Sub(start), done, messages, due.Sub(start))
				}
				f.now = due
				f.a.e.Advance(f.now)
				f.b.e.Advance(f.now)
			}
			got := float64(sent) * 8000 / float64(f.now.Sub(start))
			if c := f.a.e.Counters(); c.RetransmittedPackets != 0 || c.Probes != 0 {
				t.Errorf("%d retransmissions, %d probes", c.RetransmittedPackets, c.Probes)
			}
			// Small messages end with a burst that does not wait for what would come next.
			if got < mbps*0.95 || got > mbps*1.1 {
				t.Errorf("%.0f Mbit/s in %v, want %d", got, f.now.Sub(start), mbps)
			}
		})
	}
}

func other(f *flow, x *end) *end {
	if x == f.a {
		return f.b
	}
	return f.a
}

// TestRate_SlowNeedsNoRetry: a rate at which one packet takes longer than the time after which a lost one is looked for.
func TestRate_SlowNeedsNoRetry(t *testing.T) {
	f := controlled(t, 16<<10, ring.OpWrite, everything(1))
	f.a.e.Receive(f.now, []frame.In{notice(f.a)})
	f.a.post(f.wr)
	for done := 0; done == 0; {
		f.w.carry(f.now, f.a.host, f.b.host)
		f.w.carry(f.now, f.b.host, f.a.host)
		if done = f.a.e.Completions(f.comps[:]); done > 0 {
			break
		}
		f.now = max(f.now, clock.Min(f.a.e.Deadline(), f.b.e.Deadline()))
		f.a.e.Advance(f.now)
		f.b.e.Advance(f.now)
	}
	c := f.a.e.Counters()
	if took := f.now.Sub(0); took < 125*time.Millisecond || took > 200*time.Millisecond || c.RetransmittedPackets+c.RequesterTimeouts != 0 {
		t.Errorf("16 KB took %v at 1 Mbit/s, %d packets were sent again", took, c.RetransmittedPackets)
	}
}

// TestRate_EndsWithItsPriority: a priority that does not react any more has no limit, and what waited for its time leaves.
func TestRate_EndsWithItsPriority(t *testing.T) {
	f := controlled(t, 64, ring.OpWrite, everything(1))
	f.a.e.Receive(f.now, []frame.In{notice(f.a)})
	for range 3 {
		f.a.post(f.wr)
	}
	if n := f.a.e.Transmit(f.now, 0, f.w.out); n != 1 || f.a.e.Pending() != 0 {
		t.Fatalf("%d packets, then pending %#x; want 1 and no turn", n, f.a.e.Pending())
	}
	s := everything(1)
	s.React = 0xfe
	if err := f.a.e.SetCongestion(s); err != nil {
		t.Fatal(err)
	}
	if n := f.a.e.Transmit(f.now, 0, f.w.out); n != 2 {
		t.Errorf("%d packets without congestion control, want the other 2", n)
	}
	if f.a.q.react != nil || f.a.q.route.TrafficClass != 0 {
		t.Errorf("a reaction point is left, or traffic class %#x", f.a.q.route.TrafficClass)
	}
}

// TestRate_FollowsParameters: parameters that change apply to rates that are limited already.
func TestRate_FollowsParameters(t *testing.T) {
	f := controlled(t, 64, ring.OpWrite, everything(100))
	f.a.e.Receive(f.now, []frame.In{notice(f.a)})
	s := everything(100)
	s.Reaction.TimeReset, s.Reaction.AIRate = 10*time.Microsecond, 1000
	if err := f.a.e.SetCongestion(s); err != nil {
		t.Fatal(err)
	}
	for _, at := range []clock.Time{1, 10_001, 20_001} {
		f.a.e.Rate(at, f.a.q)
	}
	if r, _ := f.a.e.Rate(25_000, f.a.q); r.Current != 600 || r.Target != 1100 {
		t.Errorf("%+v, want 600 on the way to 1100", r)
	}
}

// TestDestroy_WhilePaced: a queue pair that ends while it waits for its time leaves no timer behind.
func TestDestroy_WhilePaced(t *testing.T) {
	f := controlled(t, 64, ring.OpWrite, everything(1))
	f.a.e.Receive(f.now, []frame.In{notice(f.a)})
	f.a.post(f.wr)
	f.a.post(f.wr)
	if n := f.a.e.Transmit(f.now, 0, f.w.out); n != 1 || f.a.e.Deadline() == clock.Never || len(f.a.e.paced.heap) != 1 {
		t.Fatalf("%d packets, deadline %v", n, f.a.e.Deadline())
	}
	f.a.e.Destroy(f.now, f.a.q)
	if len(f.a.e.paced.heap) != 0 {
		t.Error("the timer is left")
	}
}

// TestNotice_Received: a congestion notification from the peer limits its queue pair alone; one from elsewhere, or for
// a priority that does not react, is ignored.
func TestNotice_Received(t *testing.T) {
	f := controlled(t, 64, ring.OpWrite, everything(100))
	forged := notice(f.a)
	forged.Src = forged.Dst
	f.a.e.Receive(f.now, []frame.In{forged})
	if _, limited := f.a.e.Rate(f.now, f.a.q); limited {
		t.Error("a notification from elsewhere limits the rate")
	}
	s := everything(100)
	s.React = 0xfe
	_ = f.a.e.SetCongestion(s)
	f.a.e.Receive(f.now, []frame.In{notice(f.a)})
	if _, limited := f.a.e.Rate(f.now, f.a.q); limited {
		t.Error("the rate of a priority that does not react is limited")
	}
	_ = f.a.e.SetCongestion(everything(100))
	f.a.e.Receive(f.now, []frame.In{notice(f.a)})
	if r, limited := f.a.e.Rate(f.now, f.a.q); !limited || r.Current != 100 {
		t.Errorf("rate %+v, limited %v", r, limited)
	}
	if c := f.a.e.Counters(); c.CongestionNotices != 3 || c.IgnoredNotices != 2 {
		t.Errorf("%d notifications, %d ignored; want 3 and 2", c.CongestionNotices, c.IgnoredNotices)
	}
}

// TestNotice_Sent: marked packets with payloads are answered by a notification, at most one in an interval, byte for byte as
// annex A17.9.3 has it and Mellanox' adapters send it.
func TestNotice_Sent(t *testing.T) {
	s := everything(100)
	s.CNPDSCP, s.CNPInterval = 48, 50*time.Microsecond
	f := controlled(t, 16<<10, ring.OpWrite, s)
	marked := func(class uint8) {
		t.Helper()
		f.a.post(f.wr)
		n := f.a.turn(f.now, f.w.out)
		in := arrivals(f.w.out[:n])
		for i := range in {
			if got := f.w.out[i].Route.TrafficClass; got != eth.ECNCapable {
				t.Fatalf("a packet leaves with traffic class %#x, want ECT(0)", got)
			}
			in[i].TrafficClass = class
		}
		f.b.e.Receive(f.now, in)
	}
	var sent []frame.Out
	answers := func() (n int) {
		for _, o := range f.w.out[:f.b.e.Transmit(f.now, 0, f.w.out)] {
			if opcode(&o) == ib.CNP { // which does not reach the sender, and slows it down
				sent = append(sent, o)
				n++
				continue
			}
			f.a.e.Receive(f.now, arrivals([]frame.Out{o}))
		}
		return n
	}
	for _, step := range []struct {
		class uint8
		at    clock.Time
		want  int
	}{{2, 0, 0}, {3, 1000, 1}, {3, 50_999, 0}, {3, 51_000, 1}, {1, 200_000, 0}} {
		f.now = step.at
		marked(step.class)
		if n := answers(); n != step.want {
			t.Errorf("at %v, traffic class %#x: %d notifications, want %d", step.at, step.class, n, step.want)
		}
		f.a.e.Completions(f.comps[:])
	}
	if c := f.b.e.Counters(); c.NoticesSent != 2 || c.MarkedPackets != 3*16 {
		t.Errorf("%d notifications for %d marked packets, want 2 for %d", c.NoticesSent, c.MarkedPackets, 3*16)
	}
	o := sent[0]
	want, _ := hex.DecodeString("8140ffff400000" + "11" + "00000000" + "00000000000000000000000000000000")
	want[7] = byte(f.a.q.num)
	if got := flat(&o); !bytes.Equal(got, want) {
		t.Errorf("%x\nwant\n%x", got, want)
	}
	if o.Route.TrafficClass != 48<<2 || o.Route.Dst != f.a.addr {
		t.Errorf("it goes to %v with traffic class %#x", o.Route.Dst, o.Route.TrafficClass)
	}
}

// TestNotice_Priority: notifications have the priority of what was marked, or one of their own, in the port's scheduler and in
// the VLAN tag (DcqcnCnpPrioMode, DcqcnCnp802pPrio).
func TestNotice_Priority(t *testing.T) {
	for _, c := range []struct {
		follow         bool
		notify         uint8
		priority       uint8
		want           int // packets
		wantPrio       uint8
		vlan, wantVLAN uint16
	}{
		{true, 0xff, 3, 1, 3, 3<<13 | 7, 3<<13 | 7},
		{false, 0xff, 3, 1, 6, 3<<13 | 7, 6<<13 | 7},
		{false, 0xff, 3, 1, 6, 0, 0},
		{true, 1 << 3, 3, 1, 3, 0, 0},
		{true, 0xff &^ (1 << 3), 3, 0, 3, 0, 0},
	} {
		f := newFlow(t, 1024, 64, ring.OpWrite)
		s := everything(100)
		s.FollowPriority, s.CNPPriority, s.Notify = c.follow, 6, c.notify
		if err := f.b.e.SetCongestion(s); err != nil {
			t.Fatal(err)
		}
		f.b.q.route.Priority, f.b.q.route.VLAN = c.priority, c.vlan
		f.b.q.setPriority(c.priority)
		f.a.post(f.wr)
		in := arrivals(f.w.out[:f.a.turn(f.now, f.w.out)])
		in[0].TrafficClass = 3
		f.b.e.Receive(f.now, in)
		n := 0
		for p := range uint8(frame.Priorities) {
			for _, o := range f.w.out[:f.b.e.Transmit(f.now, p, f.w.out)] {
				if opcode(&o) != ib.CNP {
					continue
				}
				if n++; p != c.wantPrio || o.Route.Priority != c.wantPrio || o.Route.VLAN != c.wantVLAN {
					t.Errorf("%+v: priority %d, route %+v", c, p, o.Route)
				}
			}
		}
		if n != c.want {
			t.Errorf("%+v: %d notifications", c, n)
		}
	}
}

// TestNotice_OfAQueuePairThatEnds: a queue pair that ends owes nothing any more.
func TestNotice_OfAQueuePairThatEnds(t *testing.T) {
	f := controlled(t, 64, ring.OpWrite, everything(100))
	f.a.post(f.wr)
	in := arrivals(f.w.out[:f.a.turn(f.now, f.w.out)])
	in[0].TrafficClass = 3
	f.b.e.Receive(f.now, in)
	if f.b.e.notices.waiting != 1 {
		t.Fatalf("waiting %#x", f.b.e.notices.waiting)
	}
	f.b.e.Destroy(f.now, f.b.q)
	if f.b.e.notices.waiting != 0 || f.b.e.Pending() != 0 {
		t.Errorf("waiting %#x, pending %#x", f.b.e.notices.waiting, f.b.e.Pending())
	}
}

// TestCongestion_AllocatesNothing: a limited flow whose packets are marked allocates nothing for a packet.
func TestCongestion_AllocatesNothing(t *testing.T) {
	s := everything(3e8)
	s.Reaction.LineRate = 4e8 // at which the packets of a round take less time than a round has
	f := controlled(t, 64<<10, ring.OpWrite, s)
	cnp := []frame.In{notice(f.a)}
	round := func() {
		f.now += 10_000_000
		f.a.e.Receive(f.now, cnp)
		f.run(t, 4)
	}
	round()
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("%v allocations in a round of 4 messages", n)
	}
}

// TestSetCongestion_Invalid: an invalid setting changes nothing, and is named.
func TestSetCongestion_Invalid(t *testing.T) {
	f := controlled(t, 64, ring.OpWrite, everything(100))
	s := everything(200)
	s.Reaction.G = math.NaN()
	if err := f.a.e.SetCongestion(s); err == nil || err.Error() != "invalid value: G is NaN, want 0 to 1" {
		t.Errorf("error %v", err)
	}
	if got := f.a.e.Congestion().Reaction.FirstCNPRate; got != 100 {
		t.Errorf("the rate is %v", got)
	}
}

// BenchmarkCongestion compares writes of 64 KB with congestion control off, on where nothing is limited or marked, and limited.
func BenchmarkCongestion(b *testing.B) {
	on := everything(3e8)
	on.Reaction.LineRate = 4e8
	for _, c := range []struct {
		name    string
		s       congestion.Settings
		limited bool
	}{{"off", congestion.Settings{}, false}, {"on", on, false}, {"limited", on, true}} {
		b.Run(c.name, func(b *testing.B) {
			f := controlled(b, 64<<10, ring.OpWrite, c.s)
			if c.limited {
				f.a.e.Receive(f.now, []frame.In{notice(f.a)})
			}
			b.ReportAllocs()
			packets := 0
			for packets < b.N {
				packets += f.run(b, 4)
			}
		})
	}
}

package transport

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport/congestion"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestRemark_KeepsOrder: a queue pair whose priority changes in the middle of a message goes on with the next packet at the new one, in
// order: the message arrives on an unreliable connection, too.
func TestRemark_KeepsOrder(t *testing.T) {
	for _, typ := range []command.QPType{command.RC, command.UC} {
		a, to, wr := limitedEnds(t, typ, 64<<10)
		w := newWire()
		a.post(wr)
		at, psns := [2]uint8{0, 5}, 0
		for i := 0; a.e.Pending() != 0 && psns < 64; i++ {
			p := at[i%2]
			if got := a.e.Pending(); got != 1<<p {
				t.Fatalf("pending %#x, want priority %d", got, p)
			}
			n := a.e.Transmit(0, p, w.out[:3])
			psns += n
			w.deliver(0, n, to)
			a.e.Remark(a.q, at[(i+1)%2], 0x28, uint16(at[(i+1)%2])<<13)
			if r := a.q.route; a.q.priority != at[(i+1)%2] || r.TrafficClass != 0x28 || typ == command.RC && a.q.win.key != keyOf(r) {
				t.Fatalf("the route is %+v", r)
			}
			out := make([]frame.Out, 4)
			for p := range uint8(frame.Priorities) {
				k := to.e.Transmit(0, p, out)
				a.e.Receive(0, arrivals(out[:k]))
			}
		}
		a.e.Transmit(0, a.q.priority, w.out)
		var comps [4]Completion
		if n := a.e.Completions(comps[:]); psns != 64 || n != 1 || comps[0].Status != ring.Success {
			t.Errorf("%d packets, %d completions", psns, n)
		}
		if c := to.e.Counters(); c.BrokenUC != 0 || c.SequenceNAKsSent != 0 {
			t.Errorf("messages were broken: %+v", c)
		}
		if len(a.e.windows) > 1 {
			t.Errorf("%d windows are left", len(a.e.windows))
		}
	}
}

// TestRemark_OfCongested: a queue pair that goes to a priority which does not react any more has no limit and the ECN bits of its
// program, and comes back with those that let switches mark it.
func TestRemark_OfCongested(t *testing.T) {
	f := newFlow(t, 1024, 64, ring.OpWrite)
	s := everything(1)
	s.React = 1
	if err := f.a.e.SetCongestion(s); err != nil {
		t.Fatal(err)
	}
	f.a.e.Receive(0, []frame.In{notice(f.a)})
	f.a.e.Remark(f.a.q, 3, 0x60, 3<<13)
	if _, limited := f.a.e.Rate(0, f.a.q); limited || f.a.q.route.TrafficClass != 0x60 {
		t.Errorf("limited %v, traffic class %#x", limited, f.a.q.route.TrafficClass)
	}
	f.a.e.Remark(f.a.q, 0, 0x21, 0)
	if f.a.q.route.TrafficClass != 0x20|eth.ECNCapable || f.a.q.ecn != 1 {
		t.Errorf("traffic class %#x, and else ECN %d", f.a.q.route.TrafficClass, f.a.q.ecn)
	}
	if err := f.a.e.SetCongestion(congestion.Settings{}); err != nil {
		t.Fatal(err)
	}
	if f.a.q.route.TrafficClass != 0x21 {
		t.Errorf("traffic class %#x", f.a.q.route.TrafficClass)
	}
}

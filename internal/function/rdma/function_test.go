package rdma

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/rdma/gsi"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport"
)

// programs records what a function passes to its programs.
type programs struct {
	completed map[transport.CQRef]int
	raised    int
}

func (p *programs) CatchUp(clock.Time)                       {}
func (p *programs) Prepare(*frame.Route) error               { return nil }
func (p *programs) Mark(*frame.Route, cm.Marks)              {}
func (p *programs) SameHost(netip.Addr, netip.Addr) *gsi.QP1 { return nil }
func (p *programs) Event(clock.Time, *cm.Event)              {}
func (p *programs) Raised(clock.Time, *transport.Event)      { p.raised++ }
func (p *programs) Completed(_ clock.Time, cq transport.CQRef, list []transport.Completion) {
	p.completed[cq] += len(list)
}

// ended is a function with a QP in the Error state, and what posts requests to it, which complete at once.
type ended struct {
	*Function
	programs *programs
	q        *transport.QP
	send     *ring.Send
}

func newEnded(t *testing.T) *ended {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	e, err := transport.New(transport.Config{Memory: memory.NewTable(4, nil)})
	check(err)
	random := uint64(1)
	c, err := cm.New(cm.Config{GUID: 1, Rand: func() uint64 { random++; return random }})
	check(err)
	x := &ended{programs: &programs{completed: map[transport.CQRef]int{}}}
	x.Function = New(Config{Engine: e, CM: c, Programs: x.programs})
	g := ring.SendGeometry(16, 1, 0)
	x.send, err = ring.OpenSend(make([]byte, g.Size()), g)
	check(err)
	g = ring.RecvGeometry(16, 1)
	r, err := ring.OpenRecv(make([]byte, g.Size()), g)
	check(err)
	x.q, err = e.CreateQP(0, transport.QPConfig{Type: command.RC, PD: 1, Send: &transport.SendRing{Send: x.send}, Recv: r, SendCQ: 5})
	check(err)
	check(e.Modify(0, x.q, command.ModifyQP{Mask: command.MaskState, State: command.Err}, nil))
	return x
}

func (x *ended) post(t *testing.T) {
	t.Helper()
	if err := x.send.Post(&ring.SendWR{Op: ring.OpSend, Flags: ring.Signaled}); err != nil {
		t.Fatal(err)
	}
	x.Engine.Doorbell(x.q)
}

var _ port.Placer = (*Function)(nil)

// TestAdvance_HoldsForAProgramThatAnswers: what completes something for a program that runs this very turn leaves what
// could be sent to the next turn, once; for a program that does not, and when nothing completes, nothing is held.
func TestAdvance_HoldsForAProgramThatAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		driver *transport.Program
		posts  bool
		want   bool
	}{
		{"driven and completed", new(transport.Program), true, true},
		{"driven, nothing completed", new(transport.Program), false, false},
		{"completed in a turn of no program", nil, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newEnded(t)
			if err := x.Engine.SendDatagram(&frame.Route{}, 1, 0, make([]byte, 24)); err != nil {
				t.Fatal(err)
			}
			if c.posts {
				x.post(t)
			}
			x.Drive(c.driver)
			x.Advance(100)
			if x.Held() != c.want || (x.Pending() == 0) != c.want {
				t.Errorf("held %t, priorities %08b; want held: %t", x.Held(), x.Pending(), c.want)
			}
			if c.want && x.Deadline() != clock.Time(100).Add(holdTime) {
				t.Errorf("it wants to run at %v, want after %v", x.Deadline(), holdTime)
			}
			if got := x.programs.completed[5]; (got == 1) != c.posts || x.Worked() != c.posts {
				t.Errorf("%d completions", got)
			}
			x.post(t)
			if x.Advance(200); c.want && x.Held() {
				t.Error("it holds again before anything was sent")
			}
		})
	}
}

// TestRelease: a function that holds sends after Release, and is not held any more.
func TestRelease(t *testing.T) {
	x := newEnded(t)
	if err := x.Engine.SendDatagram(&frame.Route{Priority: 3}, 1, 0, make([]byte, 24)); err != nil {
		t.Fatal(err)
	}
	x.Hold(0)
	if x.Pending() != 0 {
		t.Fatal("it sends while it holds")
	}
	x.Release()
	out := make([]frame.Out, 4)
	if n := x.Transmit(0, 3, out); x.Pending() != 0 || n != 1 {
		t.Errorf("%d packets leave after Release, priorities %08b pending", n, x.Pending())
	}
}

// TestDrain_IsBounded: a program that posts to an ended QP without end is served in portions.
func TestDrain_IsBounded(t *testing.T) {
	x := newEnded(t)
	for range 3 {
		for range 10 {
			x.post(t)
		}
		x.Complete(0)
	}
	if got := x.programs.completed[5]; got != 30 {
		t.Errorf("%d completions, want 30", got)
	}
	if x.Engine.Undelivered() {
		t.Error("completions are left")
	}
}

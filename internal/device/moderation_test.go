package device

import (
	"math"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// sequence returns the event sequence of a queue after the turn of the loop that has brought the completions which a program has polled:
// they can be polled before their event is raised.
func (q *queue) sequence() uint32 {
	q.p.host.lock()
	defer q.p.host.unlock()
	return q.Sequence()
}

// TestModerationOfTheAdapter: the adapter's moderation holds back the events of receives and sends, each with its own
// setting, unless the program has set the queue's moderation itself.
func TestModerationOfTheAdapter(t *testing.T) {
	const long = 60 * time.Second
	x, y := overMemory(true)(t, AdapterConfig{Moderation: Moderation{Receive: Pace{Count: 3, Interval: long}}})
	cq := y.cq(64)
	c := connect(x.qp(command.CreateQP{}, x.cq(64)), y.qp(command.CreateQP{}, cq))
	buf, dst := x.buffer(64), y.buffer(64)
	send := ring.SendWR{Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1}
	send.SGE[0] = buf.sge(0, 8)
	// events returns how many completions came before the event of an armed queue.
	events := func(of *queue, exchange func(), most int) int {
		seq := of.Sequence()
		of.Arm(ring.ArmAny)
		for i := range most {
			exchange()
			if of.sequence() != seq {
				return i + 1
			}
		}
		of.Arm(ring.ArmNone)
		return 0
	}
	receive := func() {
		c.b.postRecv(0, dst.sge(0, 64))
		c.a.post(send)
		wantSuccess(t, cq.next(), 0, ring.CQRecv)
		wantSuccess(t, c.a.cq.next(), 0, ring.CQSend)
	}
	if n := events(cq, receive, 4); n != 3 {
		t.Errorf("event after %d receives, want 3", n)
	}
	if n := events(c.a.cq, receive, 4); n != 1 {
		t.Errorf("event after %d sends, want 1", n)
	}
	x.host.lock()
	x.host.adapters[y.adapter].cfg.Moderation = Moderation{Receive: Pace{Count: 2, Interval: long}, Adaptive: true, Low: 1 << 30,
		High: 1 << 31}
	x.host.unlock()
	if n := events(cq, receive, 4); n != 1 {
		t.Errorf("event after %d receives that come slowly, want 1", n)
	}
	x.host.lock()
	x.host.adapters[y.adapter].cfg.Moderation.High = 0
	x.host.adapters[y.adapter].cfg.Moderation.Low = 0
	x.host.unlock()
	time.Sleep(2 * time.Millisecond) // the adapter measures by the clock, and not before that much has passed
	if n := events(cq, receive, 4); n != 2 {
		t.Errorf("event after %d receives that come fast, want 2", n)
	}
	y.check(y.c.ModerateCQ(bg, command.ModerateCQ{CQ: cq.q.Handle}))
	if n := events(cq, receive, 4); n != 1 {
		t.Errorf("event after %d receives, want 1: the program asked that none is held back", n)
	}
}

// TestModerateCQRoundsDown: a count and an interval above their limits are rounded down to them (WinOF 5.50, 4.9.1.1.2).
func TestModerateCQRoundsDown(t *testing.T) {
	x, _ := networks[2].make(t, AdapterConfig{})
	cq := x.cq(64)
	for _, v := range []uint32{maxModeration, maxModeration + 1, math.MaxUint32} {
		x.check(x.c.ModerateCQ(bg, command.ModerateCQ{CQ: cq.q.Handle, Count: v, Microseconds: v}))
		x.c.host.lock()
		q, err := x.c.completion("CQ", cq.q.Handle)
		got := q.chosen
		x.c.host.unlock()
		if want := (Pace{Count: maxModeration, Interval: maxModeration * time.Microsecond}); err != nil || got != want {
			t.Errorf("moderation of %d and %d us is %+v, %v; want %+v", v, v, got, err, want)
		}
	}
}

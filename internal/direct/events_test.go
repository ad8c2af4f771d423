package direct

import (
	"testing"

	"github.com/softvpi/softvpi/internal/ring"
)

// TestEventsOfDirectCompletions: waiters are woken for completions that their CQ is armed for, and for no others.
func TestEventsOfDirectCompletions(t *testing.T) {
	b := newBench(t)
	b.recvCQ.Arm(ring.ArmSolicited)
	b.recvCQ.Sleep()
	b.receive(1, place(0, 8))
	b.receive(2, place(0, 8))
	wr := b.wr(ring.OpSend, b.sge(0, 8))
	if b.i.Execute(wr); b.woken != 0 {
		t.Error("woken for an unsolicited message")
	}
	wr.Flags |= ring.Solicited
	if b.i.Execute(wr); b.woken != 1 || b.recvCQ.Sequence() != 1 {
		t.Error("not woken for a solicited one")
	}
}

// TestEventsOfChannels: events of CQs with channels are left to the driver: the arming stays, and after the operation
// the driver is told which CQs they are for.
func TestEventsOfChannels(t *testing.T) {
	b := newBench(t)
	b.conf.Flags |= SendChannel | RecvChannel
	b.delegate()
	for _, c := range []struct {
		send, recv ring.Arm
		raised     uint32
	}{{ring.ArmNone, ring.ArmNone, 0}, {ring.ArmErrors, ring.ArmSolicited, 0}, {ring.ArmAny, ring.ArmNone, RaiseSend},
		{ring.ArmNone, ring.ArmAny, RaiseSend | RaiseRecv}} {
		b.rung = 0
		if c.send != ring.ArmNone {
			b.sendCQ.Arm(c.send)
		}
		if c.recv != ring.ArmNone {
			b.recvCQ.Arm(c.recv)
		}
		b.receive(1)
		if !b.i.Execute(b.wr(ring.OpSend)) {
			t.Fatal("the send was not carried out")
		}
		if got := b.way.TakeRaised(); got != c.raised || (b.rung > 0) != (c.raised != 0) || b.woken != 0 {
			t.Errorf("%+v: raised %b, rung %d times, woken %d", c, got, b.rung, b.woken)
		}
		one(t, b.sendCQ)
		one(t, b.recvCQ)
	}
	if b.sendCQ.Sequence() != 0 {
		t.Error("the program raised an event itself")
	}
}

package transport

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestAckTimeoutOutlastsPauses: the first time-out takes the attribute's value, and none more than four times that
// (IBA 9.9.2.1.1). With a short value seven retries outlast more than a second of silence; a long value is not
// lengthened.
func TestAckTimeoutOutlastsPauses(t *testing.T) {
	_, a, b := newPair(t, 1, command.RC)
	connect(a, b, defaultConnection())
	for _, c := range []struct {
		code        uint8
		most, least time.Duration // of eight time-outs
	}{
		{8, 27 * ib.AckTimeout(8), 27 * ib.AckTimeout(8)},
		{14, 1800 * time.Millisecond, 1600 * time.Millisecond},
		{18, 8 * ib.AckTimeout(18), 8 * ib.AckTimeout(18)},
	} {
		a.q.attr.Timeout = c.code
		all, one := time.Duration(0), ib.AckTimeout(c.code)
		for n := range uint8(8) {
			a.q.requester().timeouts = n
			d := a.q.ackTimeout()
			if n == 0 && d != one || d < one || d > 4*one {
				t.Errorf("code %d, time-out %d takes %v, which is not 1 to 4 times %v", c.code, n, d, one)
			}
			all += d
		}
		if all < c.least || all > c.most {
			t.Errorf("code %d: all take %v, want %v to %v", c.code, all, c.least, c.most)
		}
	}
}

// TestFailedAndRetransmitted: the engine knows how many of its QPs are in Error, however they leave it, and which QP last
// sent a packet again.
func TestFailedAndRetransmitted(t *testing.T) {
	n, a, b := newPair(t, 1, command.RC)
	connect(a, b, defaultConnection())
	want := func(when string, failed int, again uint32) {
		t.Helper()
		if f, r := a.e.Failed(), a.e.Retransmitted(); f != failed || r != again {
			t.Errorf("%s: %d QPs in Error, QP %#x sent a packet again; want %d and %#x", when, f, r, failed, again)
		}
	}
	want("connected", 0, 0)
	n.Default.Loss = 1
	a.post(ring.SendWR{Op: ring.OpSend, Flags: ring.Signaled})
	n.Run(clock.Time(10*time.Second), func() bool { return a.e.Failed() > 0 })
	want("after all retries", 1, a.q.num)
	a.modify(command.ModifyQP{Mask: command.MaskState, State: command.Err}, nil)
	want("in Error once more", 1, a.q.num)
	a.modify(command.ModifyQP{Mask: command.MaskState, State: command.Reset}, nil)
	want("reset", 0, a.q.num)
	a.modify(command.ModifyQP{Mask: command.MaskState, State: command.Err}, nil)
	want("in Error from Reset", 1, a.q.num)
	a.e.Destroy(a.e.now, a.q)
	want("destroyed", 0, a.q.num)
}

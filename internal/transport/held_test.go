package transport

import (
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// seen is a packet on its way: who sent it, and when it arrives.
type seen struct {
	from   string
	op     ib.Opcode
	psn    ib.PSN
	ackReq bool
	at     clock.Time
}

// holding is a pair over a network in virtual time that records its packets. Both ends have receives.
type holding struct {
	t    *testing.T
	n    *sim.Network
	a, b *end
	all  []seen
}

const longTimeout = 14 // 67 ms

func newHolding(t *testing.T, timeout uint8, flow uint8) *holding {
	n, a, b := newPair(t, 1, command.RC)
	c := defaultConnection()
	c.timeout, c.flow = timeout, flow
	connect(a, b, c)
	h := &holding{t: t, n: n, a: a, b: b}
	n.Tap = func(now clock.Time, from, _ *sim.Port, packet []byte) {
		bth := ib.BTH(packet)
		name := "a"
		if from == b.port {
			name = "b"
		}
		h.all = append(h.all, seen{name, bth.Opcode(), bth.PSN(), bth.AckReq(), now})
	}
	for range 100 {
		a.postRecv(ring.RecvWR{})
		b.postRecv(ring.RecvWR{})
	}
	n.Pass(0)
	return h
}

// send posts a send without data.
func (h *holding) send(from *end, flags ring.WRFlags) {
	h.t.Helper()
	from.post(ring.SendWR{Op: ring.OpSend, Flags: flags | ring.Inline})
	h.n.Pass(0)
}

// busy makes a send from x shortly before the others.
func (h *holding) busy(x *end) {
	h.n.Pass(time.Microsecond)
	h.send(x, 0)
	h.n.Pass(20 * time.Microsecond)
	h.all = nil
}

// asked returns which messages of an end requested an ACK, in order.
func (h *holding) asked(from string) (all []bool) {
	for _, p := range h.all {
		if p.from == from && p.op == ib.RCSendOnly {
			all = append(all, p.ackReq)
		}
	}
	return all
}

// acks returns the ACKs that an end sent.
func (h *holding) acks(from string) (all []seen) {
	for _, p := range h.all {
		if p.from == from && p.op == ib.RCAcknowledge {
			all = append(all, p)
		}
	}
	return all
}

// TestACKRequest_OnlyWhereNeeded: a message of a busy queue pair requests an ACK if somebody waits for its completion,
// or if nothing would bring one in good time.
func TestACKRequest_OnlyWhereNeeded(t *testing.T) {
	for _, c := range []struct {
		name    string
		timeout uint8
		pause   time.Duration // before the message
		prepare func(*holding)
		flags   ring.WRFlags
		want    bool
	}{
		{name: "nobody waits for it", timeout: longTimeout, want: false},
		{name: "its sender waits for it", timeout: longTimeout, flags: ring.Signaled, want: true},
		{name: "every completion is reported", timeout: longTimeout, prepare: func(h *holding) { h.a.q.signalAll = true }, want: true},
		{name: "the queue pair was idle", timeout: longTimeout, pause: 2 * busyTime, want: true},
		{name: "the ACK timer is as short as the hold", timeout: 8, want: true},
		{name: "there is no ACK timer", timeout: 0, want: true},
		{name: "the window is half full", timeout: longTimeout, want: true,
			prepare: func(h *holding) { h.a.q.win.inFlight += h.a.q.win.size / 2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHolding(t, c.timeout, 0)
			h.busy(h.a)
			h.n.Pass(c.pause)
			if c.prepare != nil {
				c.prepare(h)
			}
			h.all = nil
			h.send(h.a, c.flags)
			h.n.Pass(5 * time.Microsecond)
			if got := h.asked("a"); !slices.Equal(got, []bool{c.want}) {
				t.Errorf("ACK requested: %v, want %v", got, c.want)
			}
		})
	}
}

// TestACKRequest_FewCredits: near the limit that the responder has set, each message requests an ACK, which brings the
// new limit.
func TestACKRequest_FewCredits(t *testing.T) {
	h := newHolding(t, longTimeout, 1)
	h.busy(h.a)
	c := &h.a.q.req.credit
	if !c.granted {
		t.Fatal("the responder has granted nothing")
	}
	c.lsn = h.a.q.req.ssn + 3
	h.send(h.a, 0)
	h.n.Pass(5 * time.Microsecond)
	if got := h.asked("a"); !slices.Equal(got, []bool{true}) {
		t.Errorf("ACK requested: %v, want true", got)
	}
}

// TestACKRequest_AtLeastNow: of messages in a row, one in unaskedMost+1 requests an ACK.
func TestACKRequest_AtLeastNow(t *testing.T) {
	h := newHolding(t, longTimeout, 0)
	h.a.q.win.grow(512, 512)
	h.busy(h.a)
	for range 2 * (unaskedMost + 2) {
		h.send(h.a, 0)
		h.n.Pass(time.Microsecond)
	}
	h.n.Pass(5 * time.Microsecond)
	run := 0
	for i, asked := range h.asked("a") {
		if run++; asked {
			run = 0
		}
		if run > unaskedMost+1 {
			t.Fatalf("message %d is the %dth in a row that requests no ACK, want at most %d", i, run, unaskedMost+1)
		}
	}
	if n := len(h.acks("b")); n == 0 || n > 4 {
		t.Errorf("%d ACKs of %d messages", n, len(h.asked("a")))
	}
}

// TestHeldACK_CoversWhatArrivesMeanwhile: messages that request no ACK are acknowledged by one, heldTime after the
// first of them arrived, and the engine's deadline says so.
func TestHeldACK_CoversWhatArrivesMeanwhile(t *testing.T) {
	h := newHolding(t, longTimeout, 0)
	h.busy(h.a)
	var first clock.Time
	for range 4 {
		h.send(h.a, 0)
		h.n.Pass(100 * time.Microsecond)
		if first == 0 {
			first = h.all[0].at
			if due := h.b.e.Deadline(); due != first.Add(heldTime) {
				t.Errorf("the engine wants to run at %v, want %v", due, first.Add(heldTime))
			}
		}
	}
	if got := h.asked("a"); slices.Contains(got, true) {
		t.Fatalf("ACKs requested: %v", got)
	}
	last := h.all[len(h.all)-1].psn
	if acks := h.acks("b"); len(acks) != 0 {
		t.Fatalf("ACKs before the end of the hold: %v", acks)
	}
	h.n.Pass(heldTime)
	acks := h.acks("b")
	if len(acks) != 1 || acks[0].psn != last || acks[0].at != first.Add(heldTime+2*time.Microsecond) {
		t.Errorf("ACKs %v, want one of PSN %d that leaves at %v", acks, last, first.Add(heldTime))
	}
	if n := h.a.q.req.outstanding; n != 0 {
		t.Errorf("%d requests are not complete", n)
	}
	if k := h.a.e.Counters().Probes; k != 0 {
		t.Errorf("%d probes, want none while the responder acknowledges in time", k)
	}
}

// TestHeldACK_RequestedOneCoversIt: after an ACK that was requested, or that a NAK or response implies, none is held.
func TestHeldACK_RequestedOneCoversIt(t *testing.T) {
	h := newHolding(t, longTimeout, 0)
	h.busy(h.a)
	h.send(h.a, 0)
	h.send(h.a, ring.Signaled)
	h.n.Pass(2 * heldTime)
	if acks := h.acks("b"); len(acks) != 1 {
		t.Errorf("ACKs %v, want the requested one alone", acks)
	}
	if due := h.b.e.Deadline(); due != clock.Never {
		t.Errorf("the engine still has a deadline at %v", due)
	}
}

// TestHeldACK_LeavesWithItsQueuePair: a queue pair that ends, in whatever way, sends the ACK that it holds: its peer
// must not see messages fail that have arrived. One that was released is not acknowledged any more.
func TestHeldACK_LeavesWithItsQueuePair(t *testing.T) {
	for name, end := range map[string]func(*holding){
		"destroyed": func(h *holding) { h.b.e.Destroy(h.n.Now(), h.b.q) },
		"to Error":  func(h *holding) { h.b.modify(command.ModifyQP{Mask: command.MaskState, State: command.Err}, nil) },
		"to Reset":  func(h *holding) { h.b.modify(command.ModifyQP{Mask: command.MaskState, State: command.Reset}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHolding(t, longTimeout, 0)
			h.busy(h.a)
			h.send(h.a, 0)
			h.n.Pass(5 * time.Microsecond)
			end(h)
			if h.b.e.Pending() == 0 || h.b.e.Parting() == 0 || !h.b.e.Owes() {
				t.Error("the engine has nothing to send")
			}
			h.b.port.Wake()
			h.n.Pass(5 * time.Microsecond)
			if acks := h.acks("b"); len(acks) != 1 || acks[0].psn != h.all[0].psn {
				t.Errorf("ACKs %v, want one of PSN %d", acks, h.all[0].psn)
			}
			if n := h.a.q.req.outstanding; n != 0 {
				t.Errorf("%d requests are not complete", n)
			}
			if h.b.e.Parting() != 0 || h.b.e.Owes() || h.b.e.held.head != nil {
				t.Error("something is left to be sent")
			}
		})
	}
}

// TestOwes_ARefusal: a queue pair that a request has ended owes its peer the NAK until that has left.
func TestOwes_ARefusal(t *testing.T) {
	h := newHolding(t, longTimeout, 0)
	if h.b.e.Owes() {
		t.Error("it owes something already")
	}
	h.b.q.responder()
	h.b.q.refuse(ib.NAKRemoteAccess)
	if !h.b.e.Owes() {
		t.Error("the NAK is not owed")
	}
	h.b.port.Wake()
	h.n.Pass(5 * time.Microsecond)
	if n := len(h.all); n != 1 || h.all[0].op != ib.RCAcknowledge || h.b.e.Owes() {
		t.Errorf("packets %v, owes %v; want the NAK, and nothing", h.all, h.b.e.Owes())
	}
}

// TestHeldACK_BeforeMADs: a held ACK leaves before a MAD, which may be the one that disconnects its queue pair.
func TestHeldACK_BeforeMADs(t *testing.T) {
	h := newHolding(t, longTimeout, 0)
	h.busy(h.a)
	h.send(h.a, 0)
	h.n.Pass(5 * time.Microsecond)
	h.all = nil
	if err := h.b.e.SendDatagram(&frame.Route{Src: h.b.addr, Dst: h.a.addr}, 1, 0, []byte{1}); err != nil {
		t.Fatal(err)
	}
	h.b.port.Wake()
	h.n.Pass(5 * time.Microsecond)
	if len(h.all) != 2 || h.all[0].op != ib.RCAcknowledge || h.all[1].op != ib.UDSendOnly {
		t.Errorf("packets %v, want the ACK and then the MAD", h.all)
	}
}

// TestHeldACK_LostMessages: the last message of a row that requests no ACK is lost, or the ACK that was held. It is
// delivered all the same, once, by a probe, and nothing fails.
func TestHeldACK_LostMessages(t *testing.T) {
	for name, lost := range map[string]ib.Opcode{"message": ib.RCSendOnly, "ACK": ib.RCAcknowledge} {
		t.Run(name, func(t *testing.T) {
			h := newHolding(t, longTimeout, 0)
			h.busy(h.a)
			h.b.comps = nil
			dropped := false
			h.n.Filter = func(_, _ *sim.Port, packet []byte) bool {
				if !dropped && ib.BTH(packet).Opcode() == lost {
					dropped = true
					return false
				}
				return true
			}
			h.send(h.a, 0)
			h.n.Pass(50 * time.Millisecond)
			if n := len(h.b.comps); n != 1 || !dropped {
				t.Errorf("%d messages arrived, want 1; dropped: %v", n, dropped)
			}
			if n := h.a.q.req.outstanding; n != 0 || h.a.q.state != command.RTS {
				t.Errorf("%d requests are not complete, state %s", n, stateName(h.a.q.state))
			}
		})
	}
}

// TestACKRequest_ResponderThatNeedsIt: a responder may send no ACK that is not requested. A probe finds out, and then
// messages request theirs.
func TestACKRequest_ResponderThatNeedsIt(t *testing.T) {
	h := newHolding(t, longTimeout, 0)
	h.busy(h.a)
	requested := true
	h.n.Filter = func(from, _ *sim.Port, packet []byte) bool {
		bth := ib.BTH(packet)
		if from == h.a.port {
			requested = bth.AckReq()
		}
		return bth.Opcode() != ib.RCAcknowledge || requested
	}
	h.send(h.a, 0)
	h.n.Pass(20 * time.Millisecond)
	if n := h.a.e.Counters().Probes; n != 1 || h.a.q.req.outstanding != 0 {
		t.Fatalf("%d probes, %d requests not complete; want 1 and 0", n, h.a.q.req.outstanding)
	}
	h.send(h.a, 0)
	h.n.Pass(20 * time.Microsecond)
	h.all = nil
	h.send(h.a, 0)
	h.n.Pass(20 * time.Millisecond)
	if got := h.asked("a"); !slices.Equal(got, []bool{true}) {
		t.Errorf("ACK requested: %v, want true", got)
	}
	if n := h.a.e.Counters().Probes; n != 1 {
		t.Errorf("%d probes, want no more", n)
	}
}

// TestHeldACK_UnderLoss: messages of which few request an ACK arrive once each, in order, over a network that loses,
// duplicates and reorders packets, and all of them complete.
func TestHeldACK_UnderLoss(t *testing.T) {
	for seed := range uint64(20) {
		n, a, b := newPair(t, seed, command.RC)
		n.Default.Loss, n.Default.Duplicate, n.Default.Reorder = 0.05, 0.02, 0.05
		c := defaultConnection()
		c.timeout = longTimeout
		connect(a, b, c)
		const all = 200
		for i := range uint64(all) {
			b.postRecv(ring.RecvWR{ID: i})
		}
		asked := 0
		n.Tap = func(_ clock.Time, from, _ *sim.Port, packet []byte) {
			if from == a.port && ib.BTH(packet).AckReq() {
				asked++
			}
		}
		for i := range all {
			a.post(ring.SendWR{ID: uint64(i), Op: ring.OpSend, Flags: ring.Inline})
			n.Pass(time.Duration(i%7) * 30 * time.Microsecond)
		}
		n.Pass(time.Second)
		if len(b.comps) != all || a.q.req.outstanding != 0 || a.q.state != command.RTS {
			t.Fatalf("seed %d: %d messages arrived, %d are not complete, state %s", seed, len(b.comps), a.q.req.outstanding,
				stateName(a.q.state))
		}
		for i, x := range b.comps {
			if x.ID != uint64(i) {
				t.Fatalf("seed %d: message %d is the %dth", seed, x.ID, i)
			}
		}
		if asked == 0 {
			t.Errorf("seed %d: no ACK was requested", seed)
		}
		t.Logf("seed %d: %d ACKs requested, %d sent", seed, asked, b.e.Counters().ACKsSent)
	}
}

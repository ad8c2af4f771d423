package transport

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// flat returns the bytes of a packet as they arrive at the peer.
func flat(o *frame.Out) []byte {
	b := append([]byte(nil), o.Head[frame.HeadRoom:o.HeadEnd]...)
	return append(append(b, o.Payload...), make([]byte, o.Pad)...)
}

// TestReceivePostedBehindRNRNAK posts a receive after a packet was refused and before its RNR NAK has left. The
// credit for the receive must leave behind the NAK, because no other doorbell will send it.
func TestReceivePostedBehindRNRNAK(t *testing.T) {
	_, a, b := newPair(t, 1, command.RC)
	c := defaultConnection()
	c.flow = 1
	connect(a, b, c)
	key := a.region(0x1000, make([]byte, 64), allowAll).Key
	var out [8]frame.Out
	wr := ring.SendWR{ID: 1, Op: ring.OpSend, NumSGE: 1}
	wr.SGE[0] = ring.SGE{Addr: 0x1000, Length: 8, LKey: key}
	if err := a.send.Post(&wr); err != nil {
		t.Fatal(err)
	}
	a.e.Doorbell(a.q)
	if n := a.e.Transmit(0, 0, out[:]); n != 1 {
		t.Fatalf("sent %d packets, want 1", n)
	}
	b.e.Receive(0, []frame.In{{Data: flat(&out[0]), Src: a.addr, Dst: b.addr}})
	if err := b.recv.Post(&ring.RecvWR{ID: 2}); err != nil {
		t.Fatal(err)
	}
	b.e.Doorbell(b.q)
	var got []ib.Syndrome
	for b.e.Pending() != 0 {
		for i := range b.e.Transmit(0, 0, out[:]) {
			p, err := ib.ParsePacket(flat(&out[i]))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, p.AETH.Syndrome())
		}
	}
	if len(got) != 2 || !got[0].IsRNR() || got[1] != ib.ACK(ib.CreditCode(1)) {
		t.Errorf("answers are %v, want an RNR NAK and one credit", got)
	}
}

// TestNewsOfReceivesSavesRNR posts one receive at a time to a responder with end-to-end credits: once the requester
// knows its credits, it waits for one and no message is refused.
func TestNewsOfReceivesSavesRNR(t *testing.T) {
	n, a, b := newPair(t, 1, command.RC)
	c := defaultConnection()
	c.flow, c.rnrTimer = 1, 22 // 20 ms
	connect(a, b, c)
	key := a.region(0x1000, make([]byte, 64), allowAll).Key
	const messages = 100
	post := func() {
		wr := ring.RecvWR{ID: 1, NumSGE: 1}
		wr.SGE[0] = ring.SGE{Addr: 0x1000, Length: 64, LKey: b.region(0x1000, make([]byte, 64), allowAll).Key}
		b.postRecv(wr)
	}
	post()
	for range messages {
		wr := ring.SendWR{Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1}
		wr.SGE[0] = ring.SGE{Addr: 0x1000, Length: 8, LKey: key}
		a.post(wr)
	}
	for taken := 0; taken < messages; {
		if !n.Step(n.Now().Add(time.Second)) {
			t.Fatalf("the network is idle after %d messages", taken)
		}
		for range b.comps {
			taken++
			post()
		}
		b.comps = nil
	}
	if k := b.e.counters.ResponderRNRNAK; k != 0 {
		t.Errorf("%d messages were refused, want none", k)
	}
	if d := time.Duration(n.Now()); d > 5*time.Millisecond {
		t.Errorf("the messages took %v, want at most 5 ms", d)
	}
}

// TestNewsOfReceiveEndsRNRWait has a message refused by a responder with a long RNR timer and posts a receive 5 ms
// later. With end-to-end credits the requester sends again at once; without them it waits for the end of the timer.
func TestNewsOfReceiveEndsRNRWait(t *testing.T) {
	for _, flow := range []uint8{0, 1} {
		n, a, b := newPair(t, 1, command.RC)
		c := defaultConnection()
		c.flow, c.rnrTimer, c.rnr = flow, 30, 1 // 328 ms
		connect(a, b, c)
		wr := ring.SendWR{Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1}
		wr.SGE[0] = ring.SGE{Addr: 0x1000, Length: 8, LKey: a.region(0x1000, make([]byte, 64), allowAll).Key}
		a.post(wr)
		for b.e.counters.ResponderRNRNAK == 0 {
			if !n.Step(n.Now().Add(time.Second)) {
				t.Fatal("nothing was refused")
			}
		}
		for n.Now() < clock.Time(5*time.Millisecond) && n.Step(clock.Time(5*time.Millisecond)) {
		}
		re := ring.RecvWR{ID: 1, NumSGE: 1}
		re.SGE[0] = ring.SGE{Addr: 0x1000, Length: 64, LKey: b.region(0x1000, make([]byte, 64), allowAll).Key}
		b.postRecv(re)
		for len(a.comps) == 0 {
			if !n.Step(n.Now().Add(time.Second)) {
				t.Fatal("the message was never sent")
			}
		}
		took := time.Duration(n.Now())
		if a.comps[0].Status != ring.Success || flow == 1 && took > 10*time.Millisecond || flow == 0 && took < 300*time.Millisecond {
			t.Errorf("flow control %d: %v after %v; want success, within 10 ms with credits and after 300 ms without", flow,
				a.comps[0].Status, took)
		}
	}
}

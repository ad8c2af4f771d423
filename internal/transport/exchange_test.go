package transport

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/internal/ring"
)

// localEnds returns two ends on the local path, with no network between them: on an engine each, or both on one.
func localEnds(t testing.TB, oneEngine bool, c connection) (a, b *end) {
	t.Helper()
	h := newHost(t, nil, "10.0.0.1", Config{})
	a = h.qp(command.RC, QPConfig{Context: 1})
	if g := h; oneEngine {
		b = g.qp(command.RC, QPConfig{Context: 2})
	} else {
		b = newHost(t, nil, "10.0.0.2", Config{FirstQPN: 0x100}).qp(command.RC, QPConfig{Context: 2})
	}
	connect(a, b, c)
	a.region(regionAt, make([]byte, regionSize), allowAll)
	if !oneEngine {
		b.region(regionAt, make([]byte, regionSize), allowAll)
	}
	if err := a.e.Join(0, a.q, b.q); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// TestLocal_SenderLeavesThePeersEngineAlone: a message on the local path is handed to the loop. The peer's engine knows
// nothing of it before the loop brings it, moves it in its own turn, and only then has a completion; the sender has its own
// when the loop has brought the answer.
func TestLocal_SenderLeavesThePeersEngineAlone(t *testing.T) {
	a, b := localEnds(t, false, defaultConnection())
	b.give(100, 1)
	a.do(ring.OpSend, 100)
	before, psn := b.e.counters, b.q.resp.psn
	var out [8]Local
	n, moved := a.e.TransmitLocal(1, out[:])
	if n != 1 || moved != 0 || out[0].To() != b.e {
		t.Fatalf("the sender's turn: %d entries, %d bytes; want 1 for the peer, and 0", n, moved)
	}
	if b.e.counters != before || b.q.resp.psn != psn || b.e.PendingLocal() || b.e.Undelivered() || b.e.now != 0 {
		t.Error("the sender's turn has changed the peer's engine")
	}
	b.e.ReceiveLocal(1, out[:n])
	if b.e.Undelivered() || !b.e.PendingLocal() {
		t.Error("the message was carried out outside of a turn of its engine")
	}
	if n, moved = b.e.TransmitLocal(1, out[:]); n != 1 || moved != 100 || out[0].To() != a.e {
		t.Fatalf("the receiver's turn: %d entries, %d bytes; want 1 for the sender, and 100", n, moved)
	}
	if b.drain(1); len(b.comps) != 1 || a.e.Undelivered() || a.e.counters.LocalMessages != 0 {
		t.Errorf("after the receiver's turn: completions %+v, and the sender has completions: %v", b.comps, a.e.Undelivered())
	}
	a.e.ReceiveLocal(2, out[:n])
	if a.drain(2); len(a.comps) != 1 || a.comps[0].Timestamp != 2 || b.comps[0].Timestamp != 1 {
		t.Errorf("completions %+v and %+v, want one of each end, of its own time", a.comps, b.comps)
	}
}

// TestLocal_HandedOverIsBounded: a sender whose peer takes nothing hands over so many messages and no more.
func TestLocal_HandedOverIsBounded(t *testing.T) {
	a, b := localEnds(t, false, defaultConnection())
	for range 200 {
		a.do(ring.OpWrite, 8)
	}
	var out [64]Local
	handed := 0
	for range 10 {
		n, _ := a.e.TransmitLocal(0, out[:])
		for i := range out[:n] {
			handed += int(out[i].count)
		}
		b.e.ReceiveLocal(0, out[:n])
	}
	if handed != localUnanswered || a.e.PendingLocal() {
		t.Errorf("%d messages handed over, want %d; wants another turn: %v", handed, localUnanswered, a.e.PendingLocal())
	}
}

// TestLocal_RefusedInTheMiddle: messages handed over behind one that finds no receive, before its sender knows that, are
// not taken, and all arrive in order when there are receives; also if both ends are on one engine, where the sender's turn
// comes between the refusal and its answer.
func TestLocal_RefusedInTheMiddle(t *testing.T) {
	for _, one := range []bool{false, true} {
		c := defaultConnection()
		c.rnrTimer = 1
		a, b := localEnds(t, one, c)
		const count = 150
		for range count {
			a.do(ring.OpSend, 8)
		}
		received := 0
		for now := clock.Time(1); received < count; now += 1000 {
			if now > clock.Time(second) {
				t.Fatalf("one engine %v: %d of %d messages arrive", one, received, count)
			}
			for _, x := range []*end{a, b} {
				if x.e.Deadline() <= now {
					x.e.Advance(now)
				}
			}
			a.local.Run(now, a.loop)
			a.drain(now)
			b.drain(now)
			if posted, _ := b.recv.Pending(); posted == 0 {
				b.give(8, 1+received%7)
				received += 1 + received%7
			}
		}
		last := uint64(0)
		for _, w := range a.comps {
			if w.QPN == a.q.num && w.Flags&ring.ReceiveSide == 0 {
				if last++; w.ID != last || w.Status != ring.Success {
					t.Fatalf("one engine %v: completion %+v, want the success of request %d", one, w, last)
				}
			}
		}
		if k := b.e.counters.ResponderRNRNAK; last < count-7 || k == 0 {
			t.Errorf("one engine %v: %d of %d requests complete, after %d refusals", one, last, count, k)
		}
	}
}

// TestLocal_HandedOverBehindARefusal: a message that its sender hands over in the same turn of an engine in which the peer,
// which is on that engine too, refuses the one before, is not taken out of order, and not twice.
func TestLocal_HandedOverBehindARefusal(t *testing.T) {
	a, b := localEnds(t, true, defaultConnection())
	var out [8]Local
	turn := func() int {
		n, _ := a.e.TransmitLocal(1, out[:])
		return n
	}
	a.doWith(ring.OpSendImm, 8, func(w *ring.SendWR) { w.Imm = 1 })
	a.e.ReceiveLocal(1, out[:turn()])
	a.doWith(ring.OpSendImm, 8, func(w *ring.SendWR) { w.Imm = 2 })
	n := turn()
	if n != 2 || out[0].kind != localRefused || out[1].kind != localRun {
		t.Fatalf("%d entries, %+v; want a refusal, and then the second message", n, out[:n])
	}
	a.e.ReceiveLocal(1, out[:n])
	b.give(8, 4)
	a.local.Run(1, a.loop)
	a.drain(1)
	var got []uint32
	for _, c := range a.comps {
		if c.QPN == b.q.num {
			got = append(got, c.Imm)
		}
	}
	if len(got) != 2 || got[0] != 1 || got[1] != 2 || len(a.comps) != 4 {
		t.Errorf("messages %v arrive, %d completions; want 1 and 2, and 4", got, len(a.comps))
	}
}

// steps drives two ends one step at a time, in any order.
type steps struct {
	t    *testing.T
	rng  *rand.Rand
	now  clock.Time
	ends [2]*end
	mem  [2][]byte
	w    *wire
	sent [2]uint32
	out  [8]Local
}

// message sends the next number of an end to its peer: in a send, or by a write with immediate data.
func (s *steps) message(i int) {
	x := s.ends[i]
	s.sent[i]++
	at := uint64(64 * (s.sent[i] % 512))
	binary.LittleEndian.PutUint32(s.mem[i][at:], s.sent[i])
	wr := ring.SendWR{ID: uint64(s.sent[i]), Op: ring.OpSendImm, Flags: ring.Signaled, NumSGE: 1, Imm: s.sent[i],
		RemoteAddr: regionAt + 0x8000, RKey: s.ends[1-i].key()}
	wr.SGE[0] = ring.SGE{Addr: regionAt + at, Length: 4 + uint32(s.rng.IntN(3000)), LKey: x.key()}
	switch s.rng.IntN(4) {
	case 0:
		wr.Op = ring.OpWriteImm
	case 1: // something that takes no receive comes in between
		between := wr
		between.Op, between.Flags, between.SGE[0] = ring.OpRead, 0, ring.SGE{Addr: regionAt + 0xf000, Length: 2000, LKey: x.key()}
		if x.send.Post(&between) != nil {
			s.sent[i]--
			return
		}
	}
	if x.send.Post(&wr) != nil {
		s.sent[i]--
		return
	}
	x.e.Doorbell(x.q)
}

// step does one thing, chosen at random.
func (s *steps) step() {
	s.now++
	i := s.rng.IntN(2)
	x := s.ends[i]
	switch s.rng.IntN(14) {
	case 0, 1:
		if s.sent[i] < 400 && s.sent[i]-uint32(s.done(i)) < 100 {
			s.message(i)
		}
	case 2, 3:
		if n, _ := x.recv.Pending(); n < 60 {
			x.give(4096, 1)
		}
	case 4:
		if s.rng.IntN(8) == 0 {
			x.e.Split(x.q)
		}
	case 5:
		_ = x.e.Join(s.now, s.ends[0].q, s.ends[1].q)
	case 6:
		s.now += 700_000
		s.advance()
	default:
		s.turn(i)
	}
	s.check()
}

func (s *steps) done(i int) (n int) {
	for _, c := range s.ends[i].comps {
		if c.Flags&ring.ReceiveSide == 0 {
			n++
		}
	}
	return n
}

func (s *steps) advance() {
	for _, x := range s.ends {
		if x.e.Deadline() <= s.now {
			x.e.Advance(s.now)
		}
	}
}

// turn gives an engine one turn on the local path, and carries its packets.
func (s *steps) turn(i int) {
	x, y := s.ends[i], s.ends[1-i]
	n, _ := x.e.TransmitLocal(s.now, s.out[:])
	for k := range s.out[:n] {
		s.out[k].To().ReceiveLocal(s.now, s.out[k:k+1])
	}
	k := x.e.Transmit(s.now, 0, s.w.out)
	s.w.deliver(s.now, k, y.host)
	x.drain(s.now)
	y.drain(s.now)
}

// check is what holds after each step.
func (s *steps) check() {
	a, b := s.ends[0].q, s.ends[1].q
	if a.pair == nil || a.pair != b.pair || a.state != command.RTS || b.state != command.RTS {
		return
	}
	for _, q := range []*QP{a, b} {
		if o, in := &q.req.outbox, &q.peer().resp.inbox; q.pair.Carrier() == path.ByLoop && q.carrier == path.ByLoop &&
			(o.count < in.count || (o.count == 0) != (o.oldest == nil) || (in.count == 0) != (in.next == nil)) {
			s.t.Fatalf("%d messages handed over, of which the peer has %d", o.count, in.count)
		}
		if q.carrier != path.ByLoop && (q.req.outbox.count != 0 || q.resp.inbox.count != 0) {
			s.t.Fatal("messages are on the local path, and the queue pair is not")
		}
	}
}

// verify checks that an end's receives completed with the numbers that its peer sent, in order, and its requests likewise.
func (s *steps) verify(i int) error {
	var sends, recvs uint32
	for _, c := range s.ends[i].comps {
		if c.Status != ring.Success {
			return fmt.Errorf("completion %+v", c)
		}
		if c.Flags&ring.ReceiveSide == 0 {
			if sends++; c.ID != uint64(sends) {
				return fmt.Errorf("request %d completes, want %d", c.ID, sends)
			}
		} else if recvs++; c.Imm != recvs {
			return fmt.Errorf("message %d arrives, want %d", c.Imm, recvs)
		}
	}
	if sends != s.sent[i] || recvs != s.sent[1-i] {
		return fmt.Errorf("%d of %d requests complete, %d of %d messages arrive", sends, s.sent[i], recvs, s.sent[1-i])
	}
	return nil
}

func newSteps(t *testing.T, seed uint64) *steps {
	s := &steps{t: t, rng: rand.New(rand.NewPCG(seed, 3)), w: newWire(), now: 1}
	c := defaultConnection()
	c.timeout = 10
	a := newHost(t, nil, "10.0.0.1", Config{}).qp(command.RC, QPConfig{Context: 1})
	b := newHost(t, nil, "10.0.0.2", Config{FirstQPN: 0x100}).qp(command.RC, QPConfig{Context: 2})
	connect(a, b, c)
	s.ends = [2]*end{a, b}
	for i, x := range s.ends {
		s.mem[i] = make([]byte, regionSize)
		x.region(regionAt, s.mem[i], allowAll)
	}
	return s
}

// TestLocal_AnyOrderOfTurns: whatever the order of the engines' turns, with receives that are missing, and leaving and
// joining at any moment, messages handed over included, every message arrives once and in order, and so do completions.
func TestLocal_AnyOrderOfTurns(t *testing.T) {
	var local, wired uint64
	for seed := range uint64(programs()) / 4 {
		s := newSteps(t, seed+1)
		for range 600 {
			s.step()
		}
		for k := 0; k < 20000 && (s.verify(0) != nil || s.verify(1) != nil); k++ {
			for i, x := range s.ends {
				if n, _ := x.recv.Pending(); n < 60 {
					x.give(4096, 1)
				}
				s.turn(i)
			}
			s.now += 100_000
			s.advance()
		}
		for i := range s.ends {
			if err := s.verify(i); err != nil {
				t.Fatalf("seed %d, end %d: %v", seed+1, i, err)
			}
			local += s.ends[i].e.counters.LocalMessages
			wired += s.ends[i].e.counters.OutboundPackets
		}
	}
	if local == 0 || wired == 0 {
		t.Errorf("%d local messages and %d packets, want some of both", local, wired)
	}
}

// TestLocal_PeerEndsAtAnyTime: if an end is destroyed, reset or fails at any moment, messages handed over included, the
// other's requests complete once and in order: first successes, then one error, then flushes.
func TestLocal_PeerEndsAtAnyTime(t *testing.T) {
	for seed := range uint64(programs()) / 4 {
		s := newSteps(t, seed+1)
		for range s.rng.IntN(300) {
			s.step()
		}
		dies, lives := s.ends[1], s.ends[0]
		switch s.rng.IntN(3) {
		case 0:
			dies.e.Destroy(s.now, dies.q)
		case 1:
			dies.modify(command.ModifyQP{Mask: command.MaskState, State: command.Reset}, nil)
		default:
			dies.modify(command.ModifyQP{Mask: command.MaskState, State: command.Err}, nil)
		}
		s.message(0)
		for range 3000 {
			s.turn(0)
			s.turn(1)
			s.now += 5_000_000
			s.advance()
		}
		failed, last := false, uint64(0)
		for _, c := range lives.comps {
			if c.Flags&ring.ReceiveSide != 0 {
				continue
			}
			switch {
			case !failed && c.Status == ring.Success, failed && c.Status == ring.WRFlush:
			case !failed && c.Status == ring.RetryExceeded:
				failed = true
			case !failed && c.Status == ring.WRFlush: // the read before it failed
				failed = true
			default:
				t.Fatalf("seed %d: completion %+v after failure %v", seed+1, c, failed)
			}
			if c.ID < last {
				t.Fatalf("seed %d: request %d completes after %d", seed+1, c.ID, last)
			}
			last = c.ID
		}
		if last != uint64(s.sent[0]) || lives.q.Local() {
			t.Fatalf("seed %d: %d of %d requests complete; on the local path: %v", seed+1, last, s.sent[0], lives.q.Local())
		}
	}
}

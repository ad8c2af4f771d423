package device

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// burst posts sends with one doorbell, and numbers them.
func (q *rawEnd) burst(list ...ring.SendWR) {
	q.p.t.Helper()
	for i := range list {
		list[i].ID, list[i].Op = uint64(i), ring.OpSend
		q.p.check(q.send.Post(&list[i]))
	}
	q.p.c.Doorbell(q.q.Handle)
}

// of is a signaled send of pieces of memory.
func of(sges ...ring.SGE) (wr ring.SendWR) {
	wr.Flags, wr.NumSGE = ring.Signaled, uint8(copy(wr.SGE[:], sges))
	return wr
}

// ends checks the statuses of the next completions, in the order of their requests.
func (q *rawEnd) ends(want ...ring.Status) {
	q.p.t.Helper()
	for i, s := range want {
		if e := q.cq.next(); e.ID != uint64(i) || e.Status != s || e.Op != ring.CQSend {
			q.p.t.Errorf("completion %d is of request %d (%v), %v; want %v", i, e.ID, e.Op, e.Status, s)
		}
	}
}

// TestRawPackets_Order: frames of one piece of memory, of several and in the request leave, arrive and complete in the order in
// which they were posted. One that is wrong ends with an error behind those before it, and those behind it are flushed.
func TestRawPackets_Order(t *testing.T) {
	one, two, third := threeEnds(t)
	to := [6]byte{2, 0, 0, 0, 9, 1}
	rx := one.rawEnd()
	rx.flow(toMAC(to, 0))
	for _, from := range []*program{two, third} {
		tx := from.rawEnd()
		frames := tx.b.b[1<<15:]
		var want [][]byte
		at := func(n int) ring.SGE {
			f := udpFrame(to, [6]byte{2, 0, 0, 0, 9, 7}, uint16(n), n)
			off := 0
			for _, w := range want {
				off += len(w)
			}
			copy(frames[off:], f)
			want = append(want, f)
			return tx.b.sge(1<<15+off, n)
		}
		split := func(s ring.SGE) (a, b ring.SGE) {
			a, b = s, s
			a.Length, b.Addr, b.Length = 7, s.Addr+7, s.Length-7
			return a, b
		}
		a, b := split(at(70))
		list := []ring.SendWR{of(a, b), of(at(60)), of(at(300))}
		a, b = split(at(1000))
		list = append(list, of(a, b), of(at(62)))
		inline := ring.SendWR{Flags: ring.Signaled | ring.Inline, Inline: udpFrame(to, to, 1, 64)}
		want = append(want, inline.Inline)
		quiet := of(at(65))
		quiet.Flags = 0
		list = append(list, inline, quiet, of(at(66)))
		rx.receive(len(list))
		tx.burst(list...)
		for i, f := range want {
			if got := rx.got(); !bytes.Equal(got, f) {
				t.Fatalf("frame %d: got %d bytes, %x; want %d", i, len(got), got[:20], len(f))
			}
		}
		for i := range list {
			if i == 6 {
				continue // nobody is told
			}
			wantSuccess(t, tx.cq.next(), uint64(i), ring.CQSend)
		}
		rx.receive(2)
		good := tx.b.sge(1<<15, 70)
		short := good
		short.Length = 13
		tx.burst(of(good), of(good), of(short), of(good))
		tx.ends(ring.Success, ring.Success, ring.LocalLength, ring.WRFlush)
		rx.got()
		rx.got()
		stranger := good
		stranger.LKey ^= 0x100
		tx.p.check(tx.p.c.ModifyQP(bg, command.ModifyQP{QP: tx.q.Handle, Mask: command.MaskState, State: command.RTS}))
		tx.burst(of(stranger), of(good))
		tx.ends(ring.LocalProtection, ring.WRFlush)
	}
}

// TestRawPackets_EndsWithFramesOnTheirWay: a queue pair that goes to error, or is drained or reset, while frames that it has handed
// out are not complete completes each of them once, as flushed, or gives its place back.
func TestRawPackets_EndsWithFramesOnTheirWay(t *testing.T) {
	one, _, _ := threeEndsWith(t, Config{Seed: 1, NoBackground: true}) // else a turn between may complete them
	h := one.host
	for _, c := range []struct {
		to   command.QPState
		want []ring.Status
	}{
		{command.Err, []ring.Status{ring.WRFlush, ring.WRFlush, ring.WRFlush}},
		{command.SQD, []ring.Status{ring.Success, ring.Success, ring.Success}},
		{command.Reset, nil},
	} {
		q := one.rawEnd()
		good := q.b.sge(0, 60)
		h.lock()
		tq := one.c.qps.Get(q.q.Handle).tq
		engine := h.adapters[one.adapter].engine
		for range 3 {
			wr := of(good)
			wr.Op = ring.OpSend
			one.check(q.send.Post(&wr))
		}
		engine.Doorbell(tq)
		out := h.ports[0].out
		if n := engine.TransmitRaw(h.now(), 0, out); n != 3 || engine.RawPending() == 0 {
			t.Fatalf("%d frames are handed out", n)
		}
		h.unlock()
		one.check(one.c.ModifyQP(bg, command.ModifyQP{QP: q.q.Handle, Mask: command.MaskState, State: c.to}))
		for i, s := range c.want {
			if e := q.cq.next(); e.Status != s {
				t.Errorf("to state %d: completion %d is %v, want %v", c.to, i, e.Status, s)
			}
		}
		if n := q.send.Room(); n != int(q.q.SendDepth) {
			t.Errorf("to state %d: %d places of the send queue are free", c.to, n)
		}
		var e [1]ring.CQE
		if one.c.Poll(1); q.cq.Poll(e[:]) > 0 {
			t.Errorf("to state %d: one more completion: %v", c.to, e[0].Status)
		}
	}
}

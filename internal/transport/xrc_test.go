package transport

import (
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// runXRC runs every fifth of the random programs of TestRCPrograms from an initiator to a target.
func runXRC(t *testing.T, local bool) {
	runPrograms(t, func(seed uint64) error {
		if *programSeed == 0 && seed%5 != 0 {
			return nil
		}
		return runProgram(t, seed, command.XRCInitiator, local)
	})
}

// TestXRCPrograms runs random programs over XRC: nothing but the direction differs from RC (annex A14).
func TestXRCPrograms(t *testing.T) { runXRC(t, false) }

// TestXRCLocalPrograms is TestLocalPrograms for XRC.
func TestXRCLocalPrograms(t *testing.T) {
	movedLocally, movedByWire = 0, 0
	runXRC(t, true)
	if movedLocally == 0 || movedByWire == 0 {
		t.Fatalf("%d local messages, %d packets: want some of both", movedLocally, movedByWire)
	}
}

// TestXRCETHOfEveryRequest: each request packet carries the number of the remote SRQ, each response none, and all have
// opcodes of the service (annex A14.4).
func TestXRCETHOfEveryRequest(t *testing.T) {
	n, a, b := newPair(t, 1, command.XRCInitiator)
	connect(a, b, defaultConnection())
	a.region(regionAt, make([]byte, regionSize), allowAll)
	b.region(regionAt, make([]byte, regionSize), allowAll)
	b.give(16000, 2)
	requests, responses := 0, 0
	n.Filter = func(from, _ *sim.Port, p []byte) bool {
		q, err := ib.ParsePacket(p)
		op := q.BTH.Opcode()
		switch {
		case err != nil, op.Service() != ib.ServiceXRC:
			t.Errorf("packet % x: %v, %v", p, op, err)
		case from == a.port:
			if requests++; !op.IsRequest() || q.XRCETH.SRQ() != testSRQ {
				t.Errorf("the initiator sent %v with the XRCETH % x", op, q.XRCETH)
			}
		default:
			if responses++; !op.IsResponse() {
				t.Errorf("the target sent %v", op)
			}
		}
		return true
	}
	for _, op := range []ring.WROp{ring.OpSend, ring.OpWrite, ring.OpWriteImm, ring.OpRead} {
		a.do(op, 16000)
	}
	a.do(ring.OpFetchAdd, 8)
	a.do(ring.OpCompareSwap, 8)
	n.Run(second, nil)
	if len(a.comps) != 6 || len(b.comps) != 2 {
		t.Fatalf("%d and %d completions, want 6 and 2: %+v", len(a.comps), len(b.comps), a.comps)
	}
	for _, c := range append(a.comps, b.comps...) {
		if c.Status != ring.Success {
			t.Errorf("completion %+v", c)
		}
	}
	if b.comps[0].CQ != 9 {
		t.Errorf("the message completes in CQ %d, want 9, that of the SRQ", b.comps[0].CQ)
	}
	if requests < 3*16+3 || responses < 16+2 {
		t.Errorf("%d requests, %d responses", requests, responses)
	}
}

// sharedQueue adds another SRQ to x's engine, with receives of size bytes.
func (x *end) sharedQueue(number, domain uint32, pd memory.PD, size, count int) (*SharedQueue, *ring.Recv) {
	x.t.Helper()
	g := ring.RecvGeometry(16, 1)
	r, err := ring.OpenRecv(make([]byte, g.Size()), g)
	if err != nil {
		x.t.Fatal(err)
	}
	for range count {
		if err := r.Post(&ring.RecvWR{ID: uint64(number), NumSGE: 1, SGE: x.sges(regionAt, size, x.key())}); err != nil {
			x.t.Fatal(err)
		}
	}
	s := &SharedQueue{Number: number, Domain: domain, PD: pd, CQ: CQRef(number), Queue: r}
	if err := x.e.AddSharedQueue(s); err != nil {
		x.t.Fatal(err)
	}
	return s, r
}

// TestXRCTarget: what a target does with requests depends on the SRQ that they name, on both paths (annex A14): whose
// receives they take, where they complete, and which protection domain they are checked against. A number that is none of
// the domain's is an invalid request; an SRQ without receives makes the initiator wait.
func TestXRCTarget(t *testing.T) {
	to := func(number uint32) func(*ring.SendWR) { return func(w *ring.SendWR) { w.RemoteQPN = number } }
	for _, c := range []struct {
		name string
		rnr  uint8
		run  func(a, b *end, n *sim.Network)
		want []string
	}{
		{"another SRQ of the domain", 7, func(a, b *end, _ *sim.Network) {
			b.sharedQueue(0x52, 0, testPD, 100, 2)
			b.give(100, 1)
			a.doWith(ring.OpSend, 16, to(0x52))
			a.do(ring.OpSend, 17)
			a.doWith(ring.OpSend, 18, to(0x52))
		}, []string{"b: wr 82 receive: success, 16 bytes", "b: wr 1 receive: success, 17 bytes", "b: wr 82 receive: success, 18 bytes"}},
		{"no such SRQ", 7, func(a, b *end, _ *sim.Network) {
			a.doWith(ring.OpSend, 16, to(0x77))
			a.do(ring.OpSend, 16)
		}, []string{"a: wr 1 send: remote invalid request error", "a: wr 2 send: work request flushed", "b: event 5", "b: event 3"}},
		{"SRQ of another domain", 7, func(a, b *end, _ *sim.Network) {
			b.sharedQueue(0x52, 1, testPD, 100, 1)
			a.doWith(ring.OpWrite, 16, to(0x52))
		}, []string{"a: wr 1 write: remote invalid request error", "b: event 5"}},
		{"key of another protection domain", 7, func(a, b *end, _ *sim.Network) {
			b.sharedQueue(0x52, 0, testPD+1, 100, 1)
			a.do(ring.OpWrite, 16)
			a.doWith(ring.OpWrite, 16, to(0x52))
		}, []string{"a: wr 1 write: success", "a: wr 2 write: remote access error"}},
		{"receive of another protection domain", 7, func(a, b *end, _ *sim.Network) {
			b.sharedQueue(0x52, 0, testPD+1, 100, 1)
			a.doWith(ring.OpSend, 16, to(0x52))
		}, []string{"a: wr 1 send: remote operation error", "b: wr 82 receive: local protection error"}},
		{"empty SRQ", 3, func(a, b *end, _ *sim.Network) {
			b.give(100, 1)
			b.sharedQueue(0x52, 0, testPD, 100, 0)
			a.doWith(ring.OpSend, 16, to(0x52))
		}, []string{"a: wr 1 send: RNR retry counter exceeded", "rnr 4/0"}},
		{"empty SRQ, then a receive", 7, func(a, b *end, n *sim.Network) {
			a.do(ring.OpSend, 16)
			n.Pass(5_000)
			b.give(100, 1)
		}, []string{"a: wr 1 send: success", "b: wr 1 receive: success, 16 bytes"}},
		{"reads and atomics", 7, func(a, b *end, n *sim.Network) {
			a.do(ring.OpRead, 9000)
			a.do(ring.OpFetchAdd, 8)
			a.do(ring.OpCompareSwap, 8)
		}, []string{"a: wr 1 read: success", "a: wr 2 fetch and add: success", "a: wr 3 compare and swap: success"}},
		{"bind", 7, func(a, b *end, n *sim.Network) {
			a.do(ring.OpBind, 0)
		}, []string{"a: wr 1 bind: local QP operation error"}},
		{"SRQ that goes", 7, func(a, b *end, n *sim.Network) {
			s, _ := b.sharedQueue(0x52, 0, testPD, 60000, 2)
			a.doWith(ring.OpSend, 16, to(0x52))
			n.Pass(50 * time.Microsecond)
			b.e.RemoveSharedQueue(s)
			a.doWith(ring.OpSend, 16, to(0x52))
		}, []string{"a: wr 1 send: success", "a: wr 2 send: remote invalid request error", "b: wr 82 receive: success, 16 bytes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got [2]string
			for i, local := range []bool{false, true} {
				n, a, b := newPair(t, 1, command.XRCInitiator)
				p := defaultConnection()
				p.rnr = c.rnr
				connect(a, b, p)
				for _, x := range []*end{a, b} {
					x.region(regionAt, make([]byte, regionSize), allowAll)
				}
				if local {
					if err := a.e.Join(0, a.q, b.q); err != nil {
						t.Fatal(err)
					}
				}
				c.run(a, b, n)
				n.Run(second, nil)
				got[i] = outcome(a, b)
			}
			for _, w := range c.want {
				if !strings.Contains(got[0], w) {
					t.Errorf("no %q in\n%s", w, got[0])
				}
			}
			if got[0] != got[1] {
				t.Errorf("on the wire:\n%son the local path:\n%s", got[0], got[1])
			}
		})
	}
}

// TestXRCQueueGoesWithinMessage: an SRQ that is removed in the middle of a message takes its receive along; the target
// ends, and nothing completes in the SRQ's CQ, whose number may be another's by then.
func TestXRCQueueGoesWithinMessage(t *testing.T) {
	n, a, b := newPair(t, 1, command.XRCInitiator)
	connect(a, b, defaultConnection())
	a.region(regionAt, make([]byte, regionSize), allowAll)
	b.region(regionAt, make([]byte, regionSize), allowAll)
	s, _ := b.sharedQueue(0x52, 0, testPD, 60000, 2)
	b.port.Service = 10 * time.Microsecond
	a.doWith(ring.OpSend, 60000, func(w *ring.SendWR) { w.RemoteQPN = 0x52 })
	n.Run(second, func() bool { return b.q.resp.recv != nil })
	b.e.RemoveSharedQueue(s)
	n.Run(n.Now()+second, nil)
	if len(a.comps) != 1 || a.comps[0].Status != ring.RemoteInvalidRequest {
		t.Errorf("the initiator completes %+v, want a remote invalid request", a.comps)
	}
	if len(b.comps) != 0 || b.q.state != command.Err {
		t.Errorf("the target completes %+v in state %s, want nothing, and Error", b.comps, stateName(b.q.state))
	}
}

// TestXRCOneQueuePerMessage: a packet within a message that names another SRQ than its first is refused.
func TestXRCOneQueuePerMessage(t *testing.T) {
	h := newHost(t, nil, "10.0.0.1", Config{})
	a, b := h.qp(command.XRCInitiator, QPConfig{}), h.qp(command.XRCTarget, QPConfig{})
	connect(a, b, defaultConnection())
	b.region(regionAt, make([]byte, regionSize), allowAll)
	b.sharedQueue(0x52, 0, testPD, 4096, 1)
	b.give(4096, 1)
	for i, number := range []uint32{testSRQ, 0x52} {
		p := make([]byte, ib.BTHLen+ib.XRCETHLen+1024)
		op := ib.XRCSendFirst
		if i > 0 {
			op = ib.XRCSendMiddle
		}
		ib.BTH(p).Encode(op, false, false, 0, ib.PKeyDefault, ib.QPN(b.q.num), ib.PSN(100+i))
		ib.XRCETH(p[ib.BTHLen:]).SetSRQ(number)
		h.e.Receive(1, []frame.In{{Data: p, Src: h.addr, Dst: h.addr}})
	}
	h.drain(clock.Time(1))
	if b.q.state != command.Err || h.e.counters.ResponderInvalidRequestErrors != 1 {
		t.Errorf("state %s, %d invalid requests", stateName(b.q.state), h.e.counters.ResponderInvalidRequestErrors)
	}
}

// TestSharedQueueNumbers: numbers are of 24 bits, not 0, and unique.
func TestSharedQueueNumbers(t *testing.T) {
	h := newHost(t, nil, "10.0.0.1", Config{})
	for _, c := range []struct {
		number uint32
		ok     bool
	}{{0, false}, {1, true}, {1, false}, {0xffffff, true}, {0x1000000, false}} {
		if err := h.e.AddSharedQueue(&SharedQueue{Number: c.number}); (err == nil) != c.ok {
			t.Errorf("number %#x: %v", c.number, err)
		}
	}
}

// TestXRCResetLetsGo: a target that was reset uses no SRQ any more, so that one may go whose memory goes with it.
func TestXRCResetLetsGo(t *testing.T) {
	n, a, b := newPair(t, 1, command.XRCInitiator)
	connect(a, b, defaultConnection())
	a.region(regionAt, make([]byte, regionSize), allowAll)
	b.region(regionAt, make([]byte, regionSize), allowAll)
	s, _ := b.sharedQueue(0x52, 0, testPD, 100, 2)
	a.doWith(ring.OpSend, 16, func(w *ring.SendWR) { w.RemoteQPN = 0x52 })
	n.Run(second, nil)
	if got := b.e.Query(b.q).RecvPosted; got != 1 {
		t.Errorf("%d receives wait in the SRQ that the target uses, want 1", got)
	}
	b.modify(command.ModifyQP{Mask: command.MaskState, State: command.Reset}, nil)
	b.e.RemoveSharedQueue(s)
	if got := b.e.Query(b.q).RecvPosted; got != 0 {
		t.Errorf("%d receives wait after a reset, want none", got)
	}
}

package transport

import (
	"fmt"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
)

// outcome describes what the programs at both ends see: completions by queue, events, states, and the counters that
// the wire and the local path both count.
func outcome(a, b *end) string {
	var s strings.Builder
	for i, x := range []*end{a, b} {
		name := "ab"[i : i+1]
		for _, recv := range []bool{false, true} {
			for _, c := range x.comps {
				if (c.Flags&ring.ReceiveSide != 0) == recv && c.QPN == x.q.num {
					fmt.Fprintf(&s, "%s: wr %d %v: %v, %d bytes, imm %d, flags %d\n", name, c.ID, c.Op, c.Status, c.ByteLen, c.Imm, c.Flags)
				}
			}
		}
		for _, v := range x.events {
			if v.QP == x.q {
				fmt.Fprintf(&s, "%s: event %d\n", name, v.Type)
			}
		}
		k := &x.e.counters
		fmt.Fprintf(&s, "%s: %s, rnr %d/%d access %d/%d invalid %d/%d length %d/%d protection %d/%d operation %d/%d discarded %d retries %d\n", name,
			stateName(x.q.state), k.RequesterRNRNAK, k.ResponderRNRNAK, k.RequesterRemoteAccessErrors, k.ResponderRemoteAccessErrors,
			k.RequesterInvalidRequestErrors, k.ResponderInvalidRequestErrors, k.RequesterLengthErrors, k.ResponderLengthErrors,
			k.RequesterProtectionErrors, k.ResponderProtectionErrors, k.RequesterQPOperationErrors, k.ResponderQPOperationErrors,
			k.DiscardedUC, k.RequesterRNRRetriesExceeded+k.RequesterRetriesExceeded)
	}
	return s.String()
}

// scenario is a program that ends in a known error or success.
type scenario struct {
	name   string
	typ    command.QPType
	change func(*connection)
	run    func(a, b *end, n *sim.Network)
	want   []string // lines that the outcome must contain
}

func (x *end) sges(addr uint64, n int, key uint32) [ring.MaxSGE]ring.SGE {
	return [ring.MaxSGE]ring.SGE{{Addr: addr, Length: uint32(n), LKey: key}}
}

const regionAt, regionSize = 0x10000, 1 << 16

var scenarios = []scenario{
	{"rkey violation", command.RC, nil, func(a, b *end, _ *sim.Network) {
		b.give(4096, 2)
		a.do(ring.OpWrite, 16)
		a.doWith(ring.OpWrite, 16, func(w *ring.SendWR) { w.RKey = 0x12300 })
		a.do(ring.OpSend, 16)
	}, []string{"a: wr 2 write: remote access error", "a: wr 3 send: work request flushed", "b: event 6",
		"b: wr 1 receive: work request flushed"}},
	{"read past the end", command.RC, nil, func(a, b *end, _ *sim.Network) {
		a.doWith(ring.OpRead, 16, func(w *ring.SendWR) { w.RemoteAddr = regionAt + regionSize - 8 })
	}, []string{"a: wr 1 read: remote access error"}},
	{"too-short receive", command.RC, nil, func(a, b *end, _ *sim.Network) {
		b.give(100, 1)
		b.give(4096, 1)
		a.do(ring.OpSend, 101)
	}, []string{"a: wr 1 send: remote invalid request error", "b: wr 1 receive: local length error",
		"b: wr 1 receive: work request flushed"}},
	{"too-short receive, long message", command.RC, nil, func(a, b *end, _ *sim.Network) {
		b.give(3000, 1)
		a.do(ring.OpSend, 9000)
	}, []string{"b: wr 1 receive: local length error"}},
	{"no access to write", command.RC, func(c *connection) { c.access = 0 }, func(a, b *end, _ *sim.Network) {
		a.do(ring.OpWrite, 16)
	}, []string{"a: wr 1 write: remote invalid request error", "b: event 5"}},
	{"no responder resources", command.RC, func(c *connection) { c.depth, c.initiatorDepth = 0, 4 }, func(a, b *end, _ *sim.Network) {
		a.do(ring.OpRead, 16)
	}, []string{"a: wr 1 read: remote invalid request error"}},
	{"atomic not aligned", command.RC, nil, func(a, b *end, _ *sim.Network) {
		a.doWith(ring.OpFetchAdd, 8, func(w *ring.SendWR) { w.RemoteAddr += 4 })
	}, []string{"a: wr 1 fetch and add: remote invalid request error"}},
	{"RNR retry exceeded", command.RC, func(c *connection) { c.rnr = 3 }, func(a, b *end, _ *sim.Network) {
		a.do(ring.OpSend, 16)
		a.do(ring.OpSend, 16)
	}, []string{"a: wr 1 send: RNR retry counter exceeded", "a: wr 2 send: work request flushed", "rnr 4/0"}},
	{"RNR, then a receive", command.RC, nil, func(a, b *end, n *sim.Network) {
		a.do(ring.OpWriteImm, 16)
		n.Pass(5_000)
		b.give(16, 1)
	}, []string{"a: wr 1 write: success", "b: wr 1 receive of write with immediate: success, 16 bytes"}},
	{"bad local key", command.RC, nil, func(a, b *end, _ *sim.Network) {
		a.do(ring.OpWrite, 16)
		a.doWith(ring.OpWrite, 16, func(w *ring.SendWR) { w.SGE[0].LKey = 0x700 })
		a.do(ring.OpWrite, 16)
	}, []string{"a: wr 1 write: success", "a: wr 2 write: local protection error", "a: wr 3 write: work request flushed"}},
	{"bad receive key", command.RC, nil, func(a, b *end, _ *sim.Network) {
		b.postRecv(ring.RecvWR{ID: 1, NumSGE: 1, SGE: b.sges(regionAt, 100, 0x700)})
		a.do(ring.OpSend, 16)
	}, []string{"a: wr 1 send: remote operation error", "b: wr 1 receive: local protection error"}},
	{"send with invalidate of nothing", command.RC, nil, func(a, b *end, _ *sim.Network) {
		b.give(16, 1)
		a.doWith(ring.OpSendInv, 16, func(w *ring.SendWR) { w.Imm = 0x700 })
	}, []string{"a: wr 1 send: remote access error", "b: wr 1 receive: local access error"}},
	{"UC without a receive", command.UC, nil, func(a, b *end, _ *sim.Network) {
		a.do(ring.OpSend, 16)
		b.give(16, 1)
		a.do(ring.OpSend, 9)
	}, []string{"a: wr 1 send: success", "a: wr 2 send: success"}},
	{"UC too-short receive", command.UC, nil, func(a, b *end, _ *sim.Network) {
		b.give(10, 1)
		a.do(ring.OpSend, 16)
		a.do(ring.OpSend, 9)
	}, []string{"b: wr 1 receive: success, 9 bytes"}},
	{"UC rkey violation", command.UC, nil, func(a, b *end, _ *sim.Network) {
		a.doWith(ring.OpWrite, 16, func(w *ring.SendWR) { w.RKey = 0x12300 })
		a.do(ring.OpWrite, 16)
	}, []string{"a: wr 1 write: success", "a: wr 2 write: success", "b: RTS"}},
	{"UC read", command.UC, nil, func(a, b *end, _ *sim.Network) {
		a.do(ring.OpRead, 16)
		a.do(ring.OpWrite, 16)
	}, []string{"a: wr 1 read: local QP operation error", "a: wr 2 write: work request flushed", "a: SQE"}},
}

func (x *end) give(size, count int) {
	for range count {
		x.postRecv(ring.RecvWR{ID: 1, NumSGE: 1, SGE: x.sges(regionAt, size, x.key())})
	}
}

func (x *end) do(op ring.WROp, size int) { x.doWith(op, size, func(*ring.SendWR) {}) }

func (x *end) doWith(op ring.WROp, size int, change func(*ring.SendWR)) {
	x.posted++
	wr := ring.SendWR{ID: x.posted, Op: op, Flags: ring.Signaled, NumSGE: 1, SGE: x.sges(regionAt, size, x.key()), RemoteAddr: regionAt,
		RKey: x.key()}
	change(&wr)
	x.post(wr)
}

// TestPathsAgree runs each scenario on the wire and on the local path: both do the same checks in the same order and
// give the same errors, completions, events and flushes.
func TestPathsAgree(t *testing.T) {
	for _, c := range scenarios {
		t.Run(c.name, func(t *testing.T) {
			var got [2]string
			for i, local := range []bool{false, true} {
				n, a, b := newPair(t, 1, c.typ)
				p := defaultConnection()
				if c.change != nil {
					c.change(&p)
				}
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
				n.Run(n.Now()+second, nil)
				b.drain(n.Now()) // a's turns leave completions in both engines
				got[i] = outcome(a, b)
				if local && n.Stats.Sent != 0 {
					t.Errorf("the local path sent %d packets, want none", n.Stats.Sent)
				}
			}
			if got[0] != got[1] {
				t.Errorf("wire:\n%s\nlocal:\n%s", got[0], got[1])
			}
			for _, w := range c.want {
				if !strings.Contains(got[0], w) {
					t.Errorf("no %q in\n%s", w, got[0])
				}
			}
		})
	}
}

// TestPeerInError: a local peer in the error state does not answer, so that a request runs out of retries as on the
// wire.
func TestPeerInError(t *testing.T) {
	n, a, b := newPair(t, 1, command.RC)
	connect(a, b, defaultConnection())
	a.region(regionAt, make([]byte, regionSize), allowAll)
	b.region(regionAt, make([]byte, regionSize), allowAll)
	if err := a.e.Join(0, a.q, b.q); err != nil {
		t.Fatal(err)
	}
	b.modify(command.ModifyQP{Mask: command.MaskState, State: command.Err}, nil)
	a.do(ring.OpWrite, 16)
	n.Run(second, nil)
	if len(a.comps) != 1 || a.comps[0].Status != ring.RetryExceeded {
		t.Fatalf("completions %+v, want one with retry exceeded", a.comps)
	}
}

// TestWindows: a type 2 memory window is bound by a work request, gives access by its R_Key, and is invalidated by
// the peer's send with invalidate or by a local invalidate (IBA 10.6.7.2).
func TestWindows(t *testing.T) {
	for _, local := range []bool{false, true} {
		n, a, b := newPair(t, 1, command.RC)
		connect(a, b, defaultConnection())
		ra := a.region(regionAt, make([]byte, regionSize), allowAll)
		mem := make([]byte, regionSize)
		rb := b.region(regionAt, mem, allowAll)
		if local {
			if err := a.e.Join(0, a.q, b.q); err != nil {
				t.Fatal(err)
			}
		}
		w, err := b.mem.AllocWindow(testPD, 2)
		if err != nil {
			t.Fatal(err)
		}
		last := func(x *end) ring.CQE {
			t.Helper()
			n.Run(n.Now()+second, nil)
			x.drain(n.Now())
			if len(x.comps) == 0 {
				t.Fatal("no completion")
			}
			return x.comps[len(x.comps)-1].CQE
		}
		for round := range 2 {
			key := memory.NextKey(w.Key())
			b.doWith(ring.OpBind, 0, func(wr *ring.SendWR) {
				wr.NumSGE, wr.RKey, wr.Imm, wr.RemoteAddr, wr.CompareAdd, wr.Access = 0, key, rb.Key, regionAt+64, 64,
					uint32(memory.RemoteWrite)
			})
			if c := last(b); c.Status != ring.Success || c.Op != ring.CQBind {
				t.Fatalf("bind: %+v", c)
			}
			a.doWith(ring.OpWrite, 64, func(wr *ring.SendWR) { wr.RemoteAddr, wr.RKey = regionAt+64, key })
			if c := last(a); c.Status != ring.Success {
				t.Fatalf("write to the window: %+v", c)
			}
			if round == 0 {
				b.give(16, 1)
				a.doWith(ring.OpSendInv, 8, func(wr *ring.SendWR) { wr.Imm = key })
				if c := last(b); c.Status != ring.Success || c.Flags&ring.Invalidated == 0 || c.Imm != key {
					t.Fatalf("send with invalidate: %+v", c)
				}
			} else {
				b.doWith(ring.OpLocalInvalidate, 0, func(wr *ring.SendWR) { wr.NumSGE, wr.Imm = 0, key })
				if c := last(b); c.Status != ring.Success || c.Op != ring.CQLocalInvalidate {
					t.Fatalf("local invalidate: %+v", c)
				}
				a.doWith(ring.OpWrite, 64, func(wr *ring.SendWR) { wr.RemoteAddr, wr.RKey = regionAt+64, key })
				if c := last(a); c.Status != ring.RemoteAccess {
					t.Fatalf("write to an invalidated window: %+v", c)
				}
			}
		}
		_ = ra
	}
}

// TestLocalReceiveEndsWait: a sender on the local path that found no receive continues as soon as one is posted, and
// does not wait for the end of the RNR timer of 655.36 ms.
func TestLocalReceiveEndsWait(t *testing.T) {
	n, a, b := newPair(t, 1, command.RC)
	p := defaultConnection()
	p.rnrTimer = 0
	connect(a, b, p)
	a.region(regionAt, make([]byte, regionSize), allowAll)
	b.region(regionAt, make([]byte, regionSize), allowAll)
	if err := a.e.Join(0, a.q, b.q); err != nil {
		t.Fatal(err)
	}
	a.do(ring.OpSend, 16)
	n.Run(second/100, nil)
	if k := b.e.Counters().ResponderRNRNAK; len(a.comps) != 0 || k != 1 {
		t.Fatalf("without a receive: %d completions, %d RNR NAKs; want 0 and 1", len(a.comps), k)
	}
	b.give(16, 1)
	n.Run(second/50, nil)
	if len(a.comps) != 1 || a.comps[0].Status != ring.Success {
		t.Fatalf("10 ms after a receive: completions %+v, want one success", a.comps)
	}
}

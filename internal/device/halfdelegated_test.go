package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// toReceive takes an RC QP to RTR towards a peer.
func (q *pair) toReceive(peer *pair) {
	q.p.t.Helper()
	for _, m := range []command.ModifyQP{
		{Mask: command.MaskState | command.MaskPKey | command.MaskAccess, State: command.Init, Access: uint32(memory.RemoteWrite)},
		{
			Mask: command.MaskState | command.MaskRoute | command.MaskMTU | command.MaskDestQPN | command.MaskRQPSN |
				command.MaskResponderResources | command.MaskMinRNRTimer,
			State: command.RTR, Route: command.AddressVector{Addr: command.AddrFrom(peer.p.addr)}, MTU: 1024,
			DestQPN: peer.q.Number, RQPSN: 7, ResponderResources: 1, MinRNRTimer: 1,
		},
	} {
		m.QP = q.q.Handle
		q.p.check(q.p.c.ModifyQP(bg, m))
	}
}

// toSend takes a QP from RTR to RTS.
func (q *pair) toSend() {
	q.p.t.Helper()
	q.p.check(q.p.c.ModifyQP(bg, command.ModifyQP{
		QP: q.q.Handle, Mask: command.MaskState | command.MaskSQPSN | command.MaskTimeout | command.MaskRetry | command.MaskRNRRetry |
			command.MaskInitiatorDepth,
		State: command.RTS, SQPSN: 7, Timeout: 14, Retry: 7, RNRRetry: 7, InitiatorDepth: 1,
	}))
}

// TestEndThatOnlyReceives: one end of a connection may stay in RTR, where it only receives. The other's direction is
// delegated to its program after the event of the first message, and its own once it is in RTS.
func TestEndThatOnlyReceives(t *testing.T) {
	l := &delegation{t: t}
	l.h = newHost(t, Config{Seed: 1})
	l.a = neighbourTo(t, l.h, l.h.add(t, AdapterConfig{Addr: loopback.Addr()}))
	l.b = neighbourTo(t, l.h, l.h.add(t, AdapterConfig{Addr: loopback.Addr()}))
	l.ma, l.baseA = l.a.region()
	l.mb, l.baseB = l.b.region()
	l.cqA, l.cqB = l.a.p.cq(64), l.b.p.cq(64)
	l.c = &connected{a: l.a.p.qp(command.CreateQP{}, l.cqA), b: l.b.p.qp(command.CreateQP{}, l.cqB)}
	a, b := l.c.a, l.c.b
	b.toReceive(a)
	a.toReceive(b)
	a.toSend()
	l.path(2)
	to := ring.SGE{Addr: l.baseB, Length: 64, LKey: l.mb.LKey}
	b.postRecv(101, to)
	l.path(2)
	a.post(*l.wr(ring.OpSend))
	wantSuccess(t, l.cqA.next(), l.nextWorkID, ring.CQSend)
	wantSuccess(t, l.cqB.next(), 101, ring.CQRecv)
	b.p.event(command.EventCommunicationEstablished)
	l.path(3)
	if !l.a.way().Delegated() || l.b.way().Delegated() {
		t.Fatalf("delegated: to the end in RTS %v, to that in RTR %v; want true, false", l.a.way().Delegated(), l.b.way().Delegated())
	}
	b.postRecv(102, to)
	if !l.a.get().Execute(l.wr(ring.OpSend)) {
		t.Fatal("the program could not send")
	}
	wantSuccess(t, l.cqA.next(), l.nextWorkID, ring.CQSend)
	wantSuccess(t, l.cqB.next(), 102, ring.CQRecv)

	b.toSend()
	l.path(3)
	if !l.a.way().Delegated() || !l.b.way().Delegated() {
		t.Fatalf("both in RTS; delegated: %v and %v, want both", l.a.way().Delegated(), l.b.way().Delegated())
	}
}

// TestRequestsOfAnEndThatOnlyReceives: a request posted by the end in RTR belongs to the engine: a delegated connection is
// taken back, and not delegated again before that end may send.
func TestRequestsOfAnEndThatOnlyReceives(t *testing.T) {
	l := delegate(t)
	for _, q := range [2]*pair{l.c.a, l.c.b} {
		q.p.check(q.p.c.ModifyQP(bg, command.ModifyQP{QP: q.q.Handle, Mask: command.MaskState, State: command.Reset}))
	}
	a, b := l.c.a, l.c.b
	b.toReceive(a)
	a.toReceive(b)
	a.toSend()
	a.post(*l.wr(ring.OpWrite))
	wantSuccess(t, l.cqA.next(), l.nextWorkID, ring.CQWrite)
	l.path(3)
	wr := ring.SendWR{ID: 77, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: l.baseA, RKey: l.ma.RKey}
	wr.SGE[0] = ring.SGE{Addr: l.baseB, Length: 8, LKey: l.mb.LKey}
	b.post(wr)
	l.path(2)
	b.toSend()
	wantSuccess(t, l.cqB.next(), 77, ring.CQWrite)
	l.path(3)
}

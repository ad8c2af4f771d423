package device

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// delegation is a connection of two fakeNeighbours that the driver delegates to them.
type delegation struct {
	h          *Host
	t          *testing.T
	a, b       *fakeNeighbour
	c          *connected
	ma, mb     command.Memory
	baseA      uint64
	baseB      uint64
	jump       atomic.Int64
	cqA, cqB   *queue
	nextWorkID uint64
}

func delegate(t *testing.T) *delegation {
	return delegateTo(t, func(p *program) *queue { return p.cq(64) })
}

// delegateTo is delegate with a CQ of the test's making for the second program.
func delegateTo(t *testing.T, cqB func(*program) *queue) *delegation {
	l := &delegation{t: t}
	start := time.Now()
	l.h = newHost(t, Config{Seed: 1, Now: func() clock.Time { return clock.Time(time.Since(start)) + clock.Time(l.jump.Load()) }})
	l.a = neighbourTo(t, l.h, l.h.add(t, AdapterConfig{Addr: loopback.Addr()}))
	l.b = neighbourTo(t, l.h, l.h.add(t, AdapterConfig{Addr: loopback.Addr()}))
	l.ma, l.baseA = l.a.region()
	l.mb, l.baseB = l.b.region()
	l.cqA, l.cqB = l.a.p.cq(64), cqB(l.b.p)
	l.c = connect(l.a.p.qp(command.CreateQP{}, l.cqA), l.b.p.qp(command.CreateQP{}, l.cqB))
	l.path(2) // until it is used
	l.a.p.c.Doorbell(l.c.a.q.Handle)
	l.path(3)
	return l
}

// path waits until the connection takes the path want.
func (l *delegation) path(want uint32) {
	l.t.Helper()
	if !await.Until(func() bool { return l.c.a.info().Path == want }) {
		l.t.Fatalf("path %d, want %d", l.c.a.info().Path, want)
	}
}

func (l *delegation) state(to command.QPState) error {
	return l.a.p.c.ModifyQP(bg, command.ModifyQP{QP: l.c.a.q.Handle, Mask: command.MaskState, State: to})
}

func (l *delegation) wr(op ring.WROp) *ring.SendWR {
	l.nextWorkID++
	wr := &ring.SendWR{ID: l.nextWorkID, Op: op, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: l.baseB, RKey: l.mb.RKey}
	wr.SGE[0] = ring.SGE{Addr: l.baseA, Length: 64, LKey: l.ma.LKey}
	return wr
}

// finished reports whether done is closed within the given time.
func finished(done chan struct{}, within time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(within):
		return false
	}
}

func in(f func()) chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

// TestConnectionIsDelegated: a connection between two programs that take part in the direct path is delegated to them. A
// request that one of them gives back is carried out by the engine, with its error, and the counters include
// everything.
func TestConnectionIsDelegated(t *testing.T) {
	l := delegate(t)
	l.a.data[5] = 99
	if !l.a.get().Execute(l.wr(ring.OpWrite)) || l.b.data[5] != 99 {
		t.Fatal("the program could not write on a delegated connection")
	}
	wantSuccess(t, l.cqA.next(), 1, ring.CQWrite)
	if n := counter(t, l.a.p, "Direct messages"); n != 1 {
		t.Errorf("%d direct messages, want 1", n)
	}
	if n := counter(t, l.b.p, "Local inbound bytes"); n != 64 {
		t.Errorf("the responder counts %d bytes, want 64", n)
	}
	bad := l.wr(ring.OpWrite)
	bad.RKey++
	if l.a.get().Execute(bad) || l.a.get().Delegated() {
		t.Fatal("a write with a wrong R_Key was carried out, or the connection was not given back")
	}
	l.c.a.post(*bad)
	if e := l.cqA.next(); e.Status != ring.RemoteAccess || e.ID != bad.ID {
		t.Errorf("completion %+v, want a remote access error of request %d", e, bad.ID)
	}
}

// TestPoliciesRecall: a path policy, a drained send queue or moderation of a CQ takes a delegated connection back, and it
// is delegated again when the policy is lifted.
func TestPoliciesRecall(t *testing.T) {
	l := delegate(t)
	x := l.a.p
	for _, c := range []struct {
		name   string
		take   func() error
		path   uint32
		giving func() error
	}{
		{"wire", func() error { return l.h.SetPath(x.adapter, PathWire) }, 1, func() error { return l.h.SetPath(x.adapter, PathAuto) }},
		{"local", func() error { return l.h.SetPath(x.adapter, PathLocal) }, 2, func() error { return l.h.SetPath(x.adapter, PathAuto) }},
		{"direct, which changes nothing", func() error { return l.h.SetPath(x.adapter, PathDirect) }, 3,
			func() error { return l.h.SetPath(x.adapter, PathAuto) }},
		{"drained send queue", func() error { return l.state(command.SQD) }, 2, func() error { return l.state(command.RTS) }},
		{"a rate of its program", func() error {
			return x.c.LimitQP(bg, command.LimitQP{QP: l.c.a.q.Handle, Rate: 1e6})
		}, 1, func() error { return x.c.LimitQP(bg, command.LimitQP{QP: l.c.a.q.Handle}) }},
		{"a rate of the other's", func() error {
			return l.b.p.c.LimitQP(bg, command.LimitQP{QP: l.c.b.q.Handle, Rate: 1e6})
		}, 1, func() error { return l.b.p.c.LimitQP(bg, command.LimitQP{QP: l.c.b.q.Handle}) }},
		{"moderation", func() error {
			return x.c.ModerateCQ(bg, command.ModerateCQ{CQ: l.cqA.q.Handle, Count: 4, Microseconds: 100})
		}, 2, func() error { return x.c.ModerateCQ(bg, command.ModerateCQ{CQ: l.cqA.q.Handle}) }},
	} {
		if err := c.take(); err != nil {
			t.Fatal(err)
		}
		if l.a.get().Delegated() != (c.path == 3) {
			t.Errorf("%s: delegated is %v", c.name, l.a.get().Delegated())
		}
		l.path(c.path)
		time.Sleep(time.Millisecond) // so that a state that holds only by chance shows
		l.path(c.path)
		l.c.a.post(*l.wr(ring.OpWrite))
		if err := c.giving(); err != nil {
			t.Fatal(err)
		}
		wantSuccess(t, l.cqA.next(), l.nextWorkID, ring.CQWrite)
		l.path(3)
	}
}

// TestProgramThatStandsStillIsEnded: a command that needs the engine waits for a program that is inside an operation,
// and holds up nobody else. A program that stays there too long loses its connection with the driver.
func TestProgramThatStandsStillIsEnded(t *testing.T) {
	l := delegate(t)
	way := l.a.way()
	atomic.StoreUint32(&way.Op, way.Op|1)
	done := in(func() {
		_ = l.b.p.c.ModifyQP(bg, command.ModifyQP{QP: l.c.b.q.Handle, Mask: command.MaskState, State: command.Err})
	})
	if finished(done, 20*time.Millisecond) {
		t.Fatal("the queue pair was changed while a program worked on it")
	}
	await.Eventually(t, "the connection is taken back while a command waits for it", func() bool { return !way.Delegated() })
	if finished(done, 0) {
		t.Fatal("the queue pair was changed while a program worked on it")
	}
	if s := l.h.Snapshot(); len(s.Clients) != 2 { // the loop is free
		t.Errorf("%d clients, want 2", len(s.Clients))
	}
	l.jump.Store(int64(10 * time.Second))
	select {
	case <-l.a.ended:
	case <-time.After(await.Limit):
		t.Fatal("the program was not ended")
	}
	l.a.p.check(l.a.p.c.Close())
	if !finished(done, await.Limit) {
		t.Fatal("the other program's command still waits after the program was ended")
	}
	if i := l.c.b.info(); i.Attr.State != command.Err {
		t.Errorf("the QP is in state %d, want error", i.Attr.State)
	}
}

// TestDeregistrationWaitsForOperations: deregistration withdraws the key at once, and returns when no program is
// inside an operation that may have found the key before.
func TestDeregistrationWaitsForOperations(t *testing.T) {
	l := delegate(t)
	way := l.a.way()
	keys, _ := direct.OpenTable(l.b.keys)
	if keys.Find(l.b.p.adapter, l.mb.RKey) == nil {
		t.Fatal("the region is not in the key table")
	}
	op := way.Op
	atomic.StoreUint32(&way.Op, op|1)
	done := in(func() { l.b.p.check(l.b.p.c.Destroy(bg, command.KindMemory, l.mb.Handle)) })
	if finished(done, 20*time.Millisecond) {
		t.Fatal("deregistered while the peer may be writing")
	}
	await.Eventually(t, "the key leaves the table", func() bool { return keys.Find(l.b.p.adapter, l.mb.RKey) == nil })
	if err := l.b.p.c.Destroy(bg, command.KindMemory, l.mb.Handle); err == nil {
		t.Error("the region was destroyed twice")
	}
	atomic.StoreUint32(&way.Op, op+2)
	if !finished(done, await.Limit) {
		t.Fatal("deregistration does not return")
	}
	if l.a.get().Execute(l.wr(ring.OpWrite)) {
		t.Error("a write with a withdrawn key was carried out")
	}
}

// TestPromptCommandsDoNotWait: a command that was asked for promptly does nothing where it would have to wait for a
// program, and is carried out where it need not.
func TestPromptCommandsDoNotWait(t *testing.T) {
	l := delegate(t)
	prompt := Promptly(bg)
	c := l.b.p.c
	way := l.a.way()
	op := way.Op
	atomic.StoreUint32(&way.Op, op|1)
	for _, do := range []func() error{
		func() error { return c.Destroy(prompt, command.KindQP, l.c.b.q.Handle) },
		func() error { return c.Destroy(prompt, command.KindMemory, l.mb.Handle) },
		func() error {
			return c.ModifyQP(prompt, command.ModifyQP{QP: l.c.b.q.Handle, Mask: command.MaskState, State: command.Err})
		},
	} {
		if err := do(); !errors.Is(err, ErrWaits) {
			t.Errorf("%v, want ErrWaits", err)
		}
	}
	if i := l.c.b.info(); i.Attr.State != command.RTS {
		t.Errorf("state %d, want RTS", i.Attr.State)
	}
	atomic.StoreUint32(&way.Op, op+2)
	l.b.p.check(c.Destroy(prompt, command.KindQP, l.c.b.q.Handle))
}

// TestProgramDiesInTheMiddleOfAMessage: if a program dies between taking a peer's receive and completing it, that
// receive is flushed, once, and the completion queue remains usable.
func TestProgramDiesInTheMiddleOfAMessage(t *testing.T) {
	for _, stage := range []string{"claimed", "taken", "completed"} {
		t.Run(stage, func(t *testing.T) {
			l := delegate(t)
			for id := range uint64(3) {
				l.c.b.postRecv(id)
			}
			way := l.a.way()
			g := ring.CQGeometry(64)
			s, err := ring.OpenShared(l.b.p.ringAt(l.cqB.q.Ring), g)
			l.b.p.check(err)
			owner := l.owner()
			atomic.StoreUint32(&way.Op, way.Op|1)
			slot, _ := s.Claim(owner)
			if stage != "claimed" {
				r, err := ring.OpenBorrowed(l.b.p.ringAt(l.c.b.q.Recv), ring.Geometry{Entries: 64, Stride: int(l.c.b.q.RecvStride)})
				l.b.p.check(err)
				r.Take()
			}
			var want []uint64
			if stage == "completed" {
				s.Fill(slot, owner, &ring.CQE{ID: 0, Flags: ring.ReceiveSide}, 0)
				want = append(want, 0)
			}
			l.a.p.check(l.a.p.c.Close())
			for len(want) < 3 {
				want = append(want, uint64(len(want)))
			}
			for _, id := range want {
				if e := l.cqB.next(); e.ID != id {
					t.Errorf("completion of %d, want %d", e.ID, id)
				}
			}
			if s.Fill(slot, owner, &ring.CQE{ID: 77}, 0) {
				t.Error("a slot that a dead program had claimed could still be filled")
			}
		})
	}
}

// owner returns the number with which the first program claims CQ slots.
func (l *delegation) owner() uint32 {
	l.a.mu.Lock()
	defer l.a.mu.Unlock()
	return l.a.owner
}

// TestRecordLastsAsLongAsTheQPs: the shared record of a connection is given back when both programs have destroyed
// their QPs, and not before.
func TestRecordLastsAsLongAsTheQPs(t *testing.T) {
	l := delegate(t)
	l.a.p.check(l.a.p.c.Destroy(bg, command.KindQP, l.c.a.q.Handle))
	if l.a.unshared.Load()+l.b.unshared.Load() != 0 {
		t.Error("the record was given back while a program may look at it")
	}
	if l.b.get().Delegated() {
		t.Error("the connection is still delegated after one QP was destroyed")
	}
	l.b.p.check(l.b.p.c.Destroy(bg, command.KindQP, l.c.b.q.Handle))
	if l.a.unshared.Load()+l.b.unshared.Load() != 1 {
		t.Error("the record was not given back")
	}
}

// TestEngineTakesWhatAProgramLeaves: requests that a program leaves in its send queue are carried out by the engine
// soon.
func TestEngineTakesWhatAProgramLeaves(t *testing.T) {
	l := delegate(t)
	wr := l.wr(ring.OpSend)
	if l.a.get().Execute(wr) || !l.a.get().Delegated() {
		t.Fatal("a send without a receive was carried out, or the connection was taken back")
	}
	l.c.a.post(*wr)
	l.c.b.postRecv(4, ring.SGE{Addr: l.baseB, Length: 64, LKey: l.mb.LKey})
	l.b.p.c.Doorbell(l.c.b.q.Handle)
	wantSuccess(t, l.cqA.next(), wr.ID, ring.CQSend)
	wantSuccess(t, l.cqB.next(), 4, ring.CQRecv)
	l.path(3)
}

// TestEventsOfChannelsOfALentConnection: the events of a CQ with a channel come from the driver: when the program
// that completed something in the CQ asks for it, and also when that program died before it could.
func TestEventsOfChannelsOfALentConnection(t *testing.T) {
	var raised atomic.Int32
	l := delegateTo(t, func(p *program) *queue {
		ch, err := p.c.CreateChannel(bg, command.CreateChannel{Kind: command.Completions}, func(command.Handle) bool {
			raised.Add(1)
			return true
		})
		p.check(err)
		q, err := p.c.CreateCQ(bg, command.CreateCQ{Adapter: p.adapter, Depth: 64, Channel: uint32(ch)})
		p.check(err)
		return p.open(q)
	})
	want := func(n int32) {
		t.Helper()
		await.Until(func() bool { return raised.Load() >= n })
		if got := raised.Load(); got != n {
			t.Fatalf("%d events, want %d", got, n)
		}
	}
	for id := range uint64(4) {
		l.c.b.postRecv(id)
	}
	send := func(flags ring.WRFlags) {
		t.Helper()
		wr := l.wr(ring.OpSend)
		wr.NumSGE, wr.Flags = 0, wr.Flags|flags // the receives have no room
		if !l.a.get().Execute(wr) {
			t.Fatal("the program could not send")
		}
	}
	send(0) // no event was asked for
	l.cqB.Arm(ring.ArmSolicited)
	send(0)
	want(0)
	send(ring.Solicited)
	want(1)

	// The last message is complete, but the program died before it asked for the event.
	l.cqB.Arm(ring.ArmAny)
	way := l.a.way()
	atomic.StoreUint32(&way.Op, way.Op|1)
	l.a.p.check(l.a.p.c.Close())
	want(2)
}

// TestRestTakesHome: after Rest, which a program calls when another process takes its place, nothing is delegated to it
// until it asks anew.
func TestRestTakesHome(t *testing.T) {
	l := delegate(t)
	before := atomic.LoadUint32(&l.a.way().Lease)
	l.a.p.check(l.a.p.c.Rest(bg))
	if now := atomic.LoadUint32(&l.a.way().Lease); now == before {
		t.Error("after Rest the lease is unchanged: the connection is still delegated")
	}
	l.path(3)
	if !l.a.get().Execute(l.wr(ring.OpWrite)) {
		t.Error("the program could not write")
	}
}

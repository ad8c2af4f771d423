package lease

import (
	"errors"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/direct"
)

// TestDelegate: a pair is delegated after its wait, and its programs are introduced once for the arenas they have.
func TestDelegate(t *testing.T) {
	b := newBench(t)
	b.lease.Want(b.now)
	if d := b.book.Deadline(); d != b.now.Add(firstWait) {
		t.Errorf("the deadline is %v, want %v", d, firstWait)
	}
	b.pass(firstWait - 1)
	if b.delegated() || !b.lease.DriverOwned() {
		t.Fatal("delegated before it has waited")
	}
	b.pass(1)
	if !b.delegated() || b.lease.DriverOwned() {
		t.Fatal("not delegated")
	}
	for again := range 2 {
		for i, p := range b.programs {
			if len(p.introduced) != 1+again {
				t.Fatalf("program %d was introduced %d times, want %d", i, len(p.introduced), 1+again)
			}
			in := p.introduced[again]
			if in.QP != b.ends[i].Handle || in.Role != uint32(i) || in.Owner != b.lease.owners[i] {
				t.Errorf("program %d was told %+v", i, in)
			}
		}
		b.lease.Recall(b.now)
		b.delegate() // with the arenas that are known
		b.lease.Recall(b.now)
		b.arenas++
		b.delegate()
	}
}

// TestNotDelegated: policies, completion queues and a program that has left keep a pair in the engine.
func TestNotDelegated(t *testing.T) {
	for name, keep := range map[string]func(*bench){
		"policy":           func(b *bench) { b.denied = true },
		"completion queue": func(b *bench) { b.recv[1].closed = true },
		"program":          func(b *bench) { b.part[0].Leave() },
		"end":              func(b *bench) { b.lease.End() },
	} {
		b := newBench(t)
		keep(b)
		b.lease.Want(b.now)
		b.pass(time.Second)
		if b.delegated() || !b.lease.DriverOwned() {
			t.Errorf("%s: delegated", name)
		}
	}
}

// TestRecall: a recalled pair is owned by the driver when no program is in the middle of an operation; a program that stays in
// one is ended, once.
func TestRecall(t *testing.T) {
	b := newBench(t)
	b.delegate()
	b.enter(1)
	if b.lease.Recall(b.now) || b.record.Way[0].Delegated() {
		t.Fatal("owned by the driver in the middle of an operation, or delegated still")
	}
	b.pass(recallTime)
	if len(b.programs[1].ended) != 0 {
		t.Fatal("ended too soon")
	}
	b.pass(1)
	b.pass(1)
	var e *command.Error
	if len(b.programs[0].ended) != 0 || len(b.programs[1].ended) != 1 || !errors.As(b.programs[1].ended[0], &e) ||
		e.Code != command.TimedOut {
		t.Fatalf("ended: %v, %v", b.programs[0].ended, b.programs[1].ended)
	}
	if b.lease.DriverOwned() {
		t.Fatal("owned by the driver while the program may be writing")
	}
	b.part[1].Leave()
	b.pass(recallLook)
	if !b.lease.DriverOwned() {
		t.Fatal("not owned by the driver after the program has left")
	}
}

// TestWait: each delegation that moves few messages doubles the wait for the next, up to a limit; one that moves enough
// makes it short again.
func TestWait(t *testing.T) {
	b := newBench(t)
	for want := 2 * firstWait; want < 4*maxWait; want *= 2 {
		b.delegate()
		b.record.Way[0].Messages[direct.CountRead] += worthDelegating - 1
		b.lease.Recall(b.now)
		if got := b.lease.wait; got != min(want, maxWait) {
			t.Fatalf("waits for %v, want %v", got, min(want, maxWait))
		}
	}
	b.delegate()
	b.record.Way[0].Messages[direct.CountRead] += worthDelegating
	b.lease.Recall(b.now)
	if b.lease.wait != firstWait {
		t.Errorf("waits for %v, want %v", b.lease.wait, firstWait)
	}
}

// TestRequestsWait: requests that a program leaves in its ring go to the engine after stallTime, or after tryTime
// while the program tries and fails, or is in the middle of one operation.
func TestRequestsWait(t *testing.T) {
	b := newBench(t)
	b.delegate()
	b.post(0)
	b.pass(stallTime - 1)
	if !b.delegated() {
		t.Fatal("recalled too soon")
	}
	b.pass(1)
	if b.delegated() {
		t.Fatal("still delegated, and the program does nothing")
	}

	b = newBench(t)
	b.delegate()
	b.post(0)
	for waited := stallTime; waited <= tryTime; waited += stallTime {
		b.record.Way[0].Op += 2
		b.pass(stallTime)
		if !b.delegated() {
			t.Fatalf("recalled after %v, while the program tries", waited)
		}
	}
	b.record.Way[0].Op += 2
	b.pass(stallTime)
	if b.delegated() {
		t.Fatal("still delegated, and nothing moves")
	}

	b = newBench(t)
	b.delegate()
	b.post(0)
	b.enter(0)
	for waited := stallTime; waited <= tryTime; waited += stallTime {
		b.pass(stallTime)
		if !b.delegated() {
			t.Fatalf("recalled after %v, in the middle of an operation", waited)
		}
	}
	b.pass(stallTime)
	if b.delegated() {
		t.Fatal("still delegated, and the operation does not end")
	}
}

// TestGivenBack: a direction that its program gave back with requests in it comes home with their doorbell.
func TestGivenBack(t *testing.T) {
	b := newBench(t)
	b.delegate()
	b.record.Way[0].Recall() // as the program does
	b.lease.Rung(b.ends[0].QP)
	if b.lease.DriverOwned() {
		t.Fatal("owned by the driver without a request")
	}
	b.post(0)
	if !b.lease.DriverOwned() {
		t.Fatal("not owned by the driver")
	}
}

// TestEvents: the driver raises the events that a program left to it, and those of the peer of a program that died.
func TestEvents(t *testing.T) {
	b := newBench(t)
	b.delegate()
	b.record.Way[0].Raised = direct.RaiseSend | direct.RaiseRecv
	b.lease.Rung(b.ends[0].QP)
	if b.send[0].raised != 1 || b.recv[1].raised != 1 || b.send[1].raised+b.recv[0].raised != 0 {
		t.Errorf("raised: %+v, %+v", b.send, b.recv)
	}
	b.part[0].Leave()
	b.lease.Recall(b.now)
	if b.send[0].raised != 1 || b.recv[1].raised != 2 || b.recv[0].raised != 0 {
		t.Errorf("raised after a program died: %+v, %+v", b.send, b.recv)
	}
}

// TestApart: a connection that must use packets leaves the local path when it is owned by the driver.
func TestApart(t *testing.T) {
	b := newBench(t)
	b.delegate()
	b.apart = true
	b.lease.Recall(b.now)
	if b.ends[0].QP.Local() {
		t.Error("the connection is still on the local path")
	}
	b.pass(time.Second)
	if b.delegated() {
		t.Error("the connection was delegated again")
	}
}

// TestFold: the adapters count what programs moved once; what a read brings is counted by the other end.
func TestFold(t *testing.T) {
	b := newBench(t)
	b.delegate()
	w := &b.record.Way[0]
	w.Messages[direct.CountRead], w.Packets[direct.CountRead], w.Bytes[direct.CountRead] = 2, 3, 4
	b.part[0].Fold()
	b.part[1].Fold()
	b.lease.Recall(b.now)
	b.lease.End()
	b.lease.End()
	c := b.ends[0].Engine.Counters()
	if c.DirectMessages != 2 || c.DirectBytes != 4 || c.LocalOutboundPackets != 3 || c.LocalInboundBytes != 4 {
		t.Errorf("counters %+v, want 2 direct messages of 4 bytes and 3 local packets", *c)
	}
	if !b.over || len(b.part[0].Leases())+len(b.part[1].Leases()) != 0 {
		t.Error("the lease did not end")
	}
}

// TestDrop: the record lasts as long as either queue pair.
func TestDrop(t *testing.T) {
	b := newBench(t)
	b.lease.End()
	b.lease.Drop()
	if b.programs[0].unshared != 0 {
		t.Error("unshared while a program may look at it")
	}
	b.lease.Drop()
	if b.programs[0].unshared != 1 {
		t.Error("the record was not given back")
	}
}

// TestOperations: the operations that may use a program's memory are over when each has ended; later ones do not
// count, and those that never end are recalled.
func TestOperations(t *testing.T) {
	b := newBench(t)
	b.delegate()
	if !b.part[1].Operations(b.now).Over(b.now) {
		t.Error("without an operation they are not over")
	}
	b.enter(0)
	o := b.part[1].Operations(b.now)
	if o.Over(b.now) {
		t.Fatal("over in the middle of an operation")
	}
	b.leave(0)
	b.enter(0)
	if !o.Over(b.now) {
		t.Error("a later operation counts")
	}
	o = b.part[1].Operations(b.now)
	b.now = b.now.Add(recallTime + 1)
	if o.Over(b.now) || b.delegated() {
		t.Error("an operation that never ends was not recalled")
	}
	b.part[0].Leave()
	b.pass(recallLook)
	if !o.Over(b.now) {
		t.Error("owned by the driver the operations are not over")
	}
}

// TestBetween: pairs are delegated between programs of one user that take part and have not left.
func TestBetween(t *testing.T) {
	program := func(uid int) *Program {
		p, err := NewProgram(&neighbour{}, uid, func() int { return 1 })
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	gone := program(1)
	gone.Leave()
	for _, c := range []struct {
		p, q *Program
		want bool
	}{
		{program(1), program(1), true}, {program(1), program(2), false}, {nil, program(1), false}, {program(1), nil, false},
		{gone, program(1), false}, {program(1), gone, false},
	} {
		if got := Between(c.p, c.q); got != c.want {
			t.Errorf("%+v and %+v: %v", c.p, c.q, got)
		}
	}
}

// TestScarceProgramsAreNotDelegatedTo: a pair stays in the engine while not all arenas of one of its programs can be passed to
// the other, whichever it is, and nobody is introduced; it is delegated when they can.
func TestScarceProgramsAreNotDelegatedTo(t *testing.T) {
	for i := range 2 {
		b := newBench(t)
		b.programs[i].scarce = true
		b.lease.Want(b.now)
		b.pass(maxWait)
		if b.delegated() || !b.lease.DriverOwned() || len(b.programs[0].introduced)+len(b.programs[1].introduced) != 0 {
			t.Errorf("program %d: delegated, with introductions %v and %v", i, b.programs[0].introduced, b.programs[1].introduced)
		}
		b.programs[i].scarce = false
		b.delegate()
	}
}

// TestDelegatedToTheProcessOfNow: the terms of a delegation name the process that the peer has at that time, and after a move
// the initiator is introduced anew.
func TestDelegatedToTheProcessOfNow(t *testing.T) {
	b := newBench(t)
	b.programs[1].process = 5
	b.delegate()
	if p := b.record.Way[0].Terms.PeerProcess; p != 5 || b.record.Way[1].Terms.PeerProcess != 0 {
		t.Fatalf("delegated to process %d, want 5", p)
	}
	b.lease.Recall(b.now)
	b.programs[1].process = 6
	before := len(b.programs[0].introduced)
	b.delegate()
	if p := b.record.Way[0].Terms.PeerProcess; p != 6 || len(b.programs[0].introduced) != before+1 {
		t.Fatalf("delegated to process %d after %d introductions, want process 6 after 1", p, len(b.programs[0].introduced)-before)
	}
	b.record.Way[0].Reason = 11
	if why := b.lease.Returned(b.ends[0].QP); why == "" || b.lease.Returned(b.ends[1].QP) != "" {
		t.Errorf("given back because %q", why)
	}
}

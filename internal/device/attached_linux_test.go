package device

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// attachedProgram is a program that reaches its rings through memory, as one in another process does: it calls the
// host neither to post nor to poll.
type attachedProgram struct {
	*program
	bells *ring.Doorbells
	wake  int
	woken chan struct{}
}

func attachedTo(t testing.TB, h *Host, adapter uint32) *attachedProgram {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	a := &attachedProgram{wake: fd, woken: make(chan struct{}, 1)}
	a.program = newProgramWith(t, h, adapter, ClientConfig{
		Name: t.Name(), PID: 2, Attached: true, WakeFD: fd,
		Notify: func(uint32, uint64) {
			select {
			case a.woken <- struct{}{}:
			default:
			}
		},
	})
	g := Doorbells()
	if a.bells, err = ring.OpenDoorbells(a.c.Arena(0)[:g.Size()], g); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *attachedProgram) ring(h command.Handle) {
	if a.bells.Ring(uint32(h)) {
		one := [8]byte{}
		binary.NativeEndian.PutUint64(one[:], 1)
		_, _ = unix.Write(a.wake, one[:])
	}
}

// waitCQ sleeps on the CQ's sequence word, as a program in another process does, and returns the next completion.
func (a *attachedProgram) waitCQ(q *queue) ring.CQE {
	deadline := time.After(await.Limit)
	var e [1]ring.CQE
	for {
		seq := q.Sequence()
		q.Arm(ring.ArmAny)
		if q.Poll(e[:]) == 1 {
			return e[0]
		}
		q.Sleep()
		for q.Sequence() == seq {
			select {
			case <-a.woken:
			case <-deadline:
				a.t.Error("no completion: a wake-up was lost")
				return ring.CQE{Status: ring.General}
			}
		}
		q.Awake()
	}
}

// TestAttachedLosesNoWakeUp: attached programs that ring doorbells in memory and sleep on their CQ lose no doorbell
// and no wake-up, also with pauses in which the loop falls asleep.
func TestAttachedLosesNoWakeUp(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	x := attachedTo(t, h, h.add(t, AdapterConfig{Addr: loopback.Addr()}))
	y := attachedTo(t, h, h.add(t, AdapterConfig{Addr: loopback.Addr()}))
	for _, path := range []PathPolicy{PathAuto, PathWire} {
		x.check(h.SetPath(x.adapter, path))
		c := connect(x.idleQP(), y.idleQP())
		bufX, bufY := x.buffer(64), y.buffer(64)
		const rounds = 300
		var wg sync.WaitGroup
		side := func(p *attachedProgram, q *pair, buf *buffer, first bool) {
			defer wg.Done()
			turn := func(i int) {
				wr := ring.SendWR{Op: ring.OpSend, NumSGE: 1}
				wr.SGE[0] = buf.sge(0, 8)
				if err := q.send.Post(&wr); err != nil {
					t.Errorf("round %d: post: %v", i, err)
				}
				p.ring(q.q.Handle)
			}
			for i := range rounds {
				if first {
					turn(i)
				}
				if e := p.waitCQ(q.cq); e.Status != ring.Success {
					t.Errorf("round %d: completion with %v", i, e.Status)
					return
				}
				q.postRecvNoCheck(buf.sge(32, 8))
				if i%16 == 0 {
					time.Sleep(200 * time.Microsecond) // so that the loop falls asleep
				}
				if !first {
					turn(i)
				}
			}
		}
		for range 4 {
			c.a.postRecvNoCheck(bufX.sge(32, 8))
			c.b.postRecvNoCheck(bufY.sge(32, 8))
		}
		wg.Add(2)
		go side(x, c.a, bufX, true)
		go side(y, c.b, bufY, false)
		wg.Wait()
	}
}

// TestPostedBeforeTheEnd: requests that were posted, with their doorbell not yet looked at, are sent before the queue
// pair, the address handle or the program that they need is destroyed, as on a card.
func TestPostedBeforeTheEnd(t *testing.T) {
	const qkey, rounds = 7, 30
	h := newHost(t, Config{Seed: 1})
	at := h.add(t, AdapterConfig{Addr: loopback.Addr()})
	to := newHost(t, Config{Seed: 2})
	y := newProgram(t, to, to.add(t, AdapterConfig{Addr: loopback.Addr()}))
	b := y.qp(command.CreateQP{Type: command.UD}, y.cq(16))
	b.toDatagrams(qkey)
	dst := y.buffer(256)
	for _, end := range []struct {
		name string
		of   func(x *attachedProgram, a *pair, ah command.Handle) error
	}{
		{"queue pair", func(x *attachedProgram, a *pair, _ command.Handle) error {
			return x.c.Destroy(bg, command.KindQP, a.q.Handle)
		}},
		{"address handle", func(x *attachedProgram, _ *pair, ah command.Handle) error { return x.c.Destroy(bg, command.KindAH, ah) }},
		{"program", func(x *attachedProgram, _ *pair, _ command.Handle) error { return x.c.Close() }},
	} {
		t.Run(end.name, func(t *testing.T) {
			for i := range uint64(rounds) {
				x := attachedTo(t, h, at)
				a := x.qp(command.CreateQP{Type: command.UD}, x.cq(16))
				a.toDatagrams(qkey)
				ah, err := x.c.CreateAH(bg, command.CreateAH{PD: x.pd, AV: command.AddressVector{Addr: command.AddrFrom(y.addr)}})
				x.check(err)
				b.postRecv(i, dst.sge(0, 256))
				src := x.buffer(8)
				wr := ring.SendWR{Op: ring.OpSend, NumSGE: 1, AH: uint32(ah), RemoteQPN: b.q.Number, QKey: qkey}
				wr.SGE[0] = src.sge(0, 8)
				if err := a.send.Post(&wr); err != nil {
					t.Fatal(err)
				}
				x.bells.Ring(uint32(a.q.Handle)) // without a wake-up: the loop may not look at it for long
				x.check(end.of(x, a, ah))
				wantSuccess(t, b.cq.next(), i, ring.CQRecv)
				x.check(x.c.Close())
			}
		})
	}
}

func (q *pair) postRecvNoCheck(s ring.SGE) {
	wr := ring.RecvWR{NumSGE: 1}
	wr.SGE[0] = s
	if err := q.recv.Post(&wr); err != nil {
		q.p.t.Errorf("post receive: %v", err)
	}
}

// TestEmbeddedLosesNoWakeUp: programs in the driver's process that post, poll, wait and send commands from many
// goroutines at once lose no wake-up.
func TestEmbeddedLosesNoWakeUp(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	i, j := h.add(t, AdapterConfig{Addr: loopback.Addr()}), h.add(t, AdapterConfig{Addr: loopback.Addr(), Path: PathWire})
	var wg sync.WaitGroup
	for range 3 {
		x, y := newProgram(t, h, i), newProgram(t, h, j)
		c := connect(x.idleQP(), y.idleQP())
		bufX, bufY := x.buffer(64), y.buffer(64)
		const rounds = 300
		side := func(p *program, q *pair, buf *buffer, first bool) {
			defer wg.Done()
			for i := range rounds {
				if first {
					_ = q.send.Post(&ring.SendWR{Op: ring.OpSend})
					p.c.Doorbell(q.q.Handle)
				}
				var e ring.CQE
				if i%3 == 0 {
					e = q.cq.next()
				} else {
					e = q.cq.wait()
				}
				if e.Status != ring.Success {
					t.Errorf("round %d: completion with %v", i, e.Status)
					return
				}
				q.postRecvNoCheck(buf.sge(32, 8))
				if i%16 == 0 {
					time.Sleep(300 * time.Microsecond)
				}
				if !first {
					_ = q.send.Post(&ring.SendWR{Op: ring.OpSend})
					p.c.Doorbell(q.q.Handle)
				}
			}
		}
		for range 4 {
			c.a.postRecvNoCheck(bufX.sge(32, 8))
			c.b.postRecvNoCheck(bufY.sge(32, 8))
		}
		wg.Add(2)
		go side(x, c.a, bufX, true)
		go side(y, c.b, bufY, false)
	}
	wg.Wait()
}

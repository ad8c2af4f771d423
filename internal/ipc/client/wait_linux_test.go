package client

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestDoorbellWakesASleepingLoop: a doorbell wakes a loop that sleeps, and only such a loop, without allocation.
func TestDoorbellWakesASleepingLoop(t *testing.T) {
	h, c := pair(t, server.Config{}, Options{})
	s := h.Only(t)
	poll := []unix.PollFd{{Fd: int32(s.Config.WakeFD), Events: unix.POLLIN}}
	c.Doorbell(5)
	if n, _ := unix.Poll(poll, 0); n != 0 {
		t.Error("a loop that runs was woken")
	}
	var out [4]uint32
	if n, _, _ := s.Doorbells.Drain(out[:]); n != 1 || out[0] != 5 {
		t.Fatalf("%d doorbells: %v, want one of 5", n, out)
	}
	if !s.Doorbells.Sleep() {
		t.Fatal("a doorbell is left, so that the loop may not sleep")
	}
	c.Doorbell(6)
	n, err := unix.Poll(poll, 10000)
	for err == unix.EINTR { // the runtime's own signals
		n, err = unix.Poll(poll, 10000)
	}
	if n != 1 {
		t.Error("a loop that sleeps was not woken")
	}
	if n := fake.Allocs(func() {
		s.Doorbells.Drain(out[:])
		s.Doorbells.Sleep()
		c.Doorbell(7)
	}); n != 0 {
		t.Errorf("%v allocations per doorbell with a wake-up, want none", n)
	}
}

// TestWakeUpsOfOneProgram: a program that opens its wake descriptor for reading through /proc, takes what it finds there
// and fills it, reaches its own wake-ups alone: another program's wake the loop, and are not in what the first one reads.
func TestWakeUpsOfOneProgram(t *testing.T) {
	h := &fake.Host{}
	_, path := fake.Serve(t, h, server.Config{})
	thief := dial(t, path, Options{})
	honest := dial(t, path, Options{})
	s := h.Sessions[1]
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", int(thief.wake.Fd())), unix.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if !s.Doorbells.Sleep() {
		t.Fatal("the loop may not sleep")
	}
	honest.Doorbell(5)
	var b [64]byte
	if n, err := unix.Read(fd, b[:]); n > 0 {
		t.Errorf("the thief took %d bytes of another program's wake-up", n)
	} else if err != unix.EAGAIN {
		t.Error(err)
	}
	poll := []unix.PollFd{{Fd: int32(s.Config.WakeFD), Events: unix.POLLIN}}
	if n, _ := unix.Poll(poll, 0); n != 1 {
		t.Error("the loop was not woken")
	}
	_, _ = unix.Read(s.Config.WakeFD, b[:])
	for range 1 << 20 { // full: it neither blocks nor wakes on another's behalf
		if _, err := unix.Write(fd, b[:]); err != nil {
			break
		}
	}
	if n, _ := unix.Poll(poll, 0); n != 0 {
		t.Error("a program woke the loop with another's descriptor")
	}
}

// TestWaitCQ: WaitCQ ends with the CQ's next event, when its context ends, and when the CQ is destroyed.
func TestWaitCQ(t *testing.T) {
	h, c := pair(t, server.Config{}, Options{})
	s := h.Only(t)
	q, err := c.CreateCQ(ctx, command.CreateCQ{Depth: 16})
	if err != nil {
		t.Fatal(err)
	}
	r, err := ring.OpenCQ(c.Arena(q.Ring.Arena)[q.Ring.Offset:], ring.Geometry{Entries: int(q.Depth), Stride: int(q.Stride)})
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		seq uint32
		err error
	}
	start := func(ctx context.Context) chan result {
		seq := r.Sequence()
		r.Arm(ring.ArmAny)
		ch := make(chan result, 1)
		go func() {
			n, err := c.WaitCQ(ctx, q.Handle, seq)
			ch <- result{n, err}
		}()
		return ch
	}
	asleep := func() bool {
		return atomic.LoadUint32((*uint32)(unsafe.Add(unsafe.Pointer(r.SequenceWord()), sleepersAfterSequence))) != 0
	}

	w := start(ctx)
	await.Eventually(t, "waiter sleeps", asleep)
	s.Push(t, q.Handle, ring.CQE{})
	if got := <-w; got.err != nil || got.seq != 1 {
		t.Errorf("event: %+v, want sequence 1", got)
	}

	cctx, cancel := context.WithCancel(ctx)
	w = start(cctx)
	await.Eventually(t, "waiter sleeps", asleep)
	cancel()
	if got := <-w; !fake.IsCode(got.err, command.Canceled) {
		t.Errorf("context canceled: %+v, want canceled", got)
	}
	dctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if got := <-start(dctx); !fake.IsCode(got.err, command.TimedOut) {
		t.Errorf("deadline passed: %+v, want timed out", got)
	}

	w = start(ctx)
	await.Eventually(t, "waiter sleeps", asleep)
	if err := c.Destroy(ctx, command.KindCQ, q.Handle); err != nil {
		t.Fatal(err)
	}
	if got := <-w; !fake.IsCode(got.err, command.NotFound) {
		t.Errorf("CQ destroyed: %+v, want not found", got)
	}
}

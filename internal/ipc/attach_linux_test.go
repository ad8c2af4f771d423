package ipc

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
)

type clientConfig = device.ClientConfig

var ctx = context.Background()

func TestAttachTellsWhoIsThere(t *testing.T) {
	h, c := pair(t, ServerConfig{Driver: "softvpi 1"}, Options{Name: "prog\x01"})
	cfg := h.only(t).cfg
	if cfg.Name != "prog?" || cfg.PID != os.Getpid() || cfg.UID != os.Getuid() || !cfg.Attached {
		t.Errorf("%+v", cfg)
	}
	if name, pid := c.Driver(); name != "softvpi 1" || pid != os.Getpid() {
		t.Errorf("driver %q %d", name, pid)
	}
}

func TestDialWithoutDriver(t *testing.T) {
	if _, err := Dial(ctx, t.TempDir()+"/none", Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestDriverRefuses(t *testing.T) {
	h := &fakeHost{refuse: command.Errorf(command.Exhausted, "no room")}
	_, path := serve(t, h, ServerConfig{})
	if _, err := Dial(ctx, path, Options{}); !isCode(err, command.Exhausted) {
		t.Errorf("%v", err)
	}
}

func TestMaxClients(t *testing.T) {
	h := &fakeHost{}
	_, path := serve(t, h, ServerConfig{MaxClients: 1})
	c := dial(t, path, Options{})
	if _, err := Dial(ctx, path, Options{}); !isCode(err, command.Exhausted) {
		t.Errorf("second: %v", err)
	}
	if _, err := c.AllocPD(ctx, 0); err != nil {
		t.Errorf("first: %v", err)
	}
}

func TestErrorsCrossWithTheirClass(t *testing.T) {
	_, c := pair(t, ServerConfig{}, Options{})
	_, err := c.AllocPD(ctx, 7)
	if !isCode(err, command.NotFound) || err.Error() != "no such object: adapter 7: there is 1" {
		t.Errorf("%v", err)
	}
}

// Rings in new arenas are there when the answer that names them is.
func TestArenasComeBeforeTheirRings(t *testing.T) {
	h, c := pair(t, ServerConfig{}, Options{})
	s := h.only(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 10 {
				q, err := c.CreateCQ(ctx, command.CreateCQ{Depth: 4096})
				if err != nil {
					t.Error(err)
					return
				}
				g := ring.Geometry{Entries: int(q.Depth), Stride: int(q.Stride)}
				r, err := ring.OpenCQ(c.Arena(q.Ring.Arena)[q.Ring.Offset:], g)
				if err != nil {
					t.Error(err)
					return
				}
				s.push(t, q.Handle, ring.CQE{ID: uint64(q.Handle)})
				var out [2]ring.CQE
				if n := r.Poll(out[:]); n != 1 || out[0].ID != uint64(q.Handle) {
					t.Errorf("polled %d %+v", n, out[0])
				}
			}
		}()
	}
	wg.Wait()
	if n := len(*c.arenas.Load()); n < 3 {
		t.Errorf("%d arenas, want several", n)
	}
}

func TestDoorbellWakesASleepingLoop(t *testing.T) {
	h, c := pair(t, ServerConfig{}, Options{})
	s := h.only(t)
	poll := []unix.PollFd{{Fd: int32(s.cfg.WakeFD), Events: unix.POLLIN}}
	c.Doorbell(5)
	if n, _ := unix.Poll(poll, 0); n != 0 {
		t.Error("a loop that runs was woken")
	}
	var out [4]uint32
	if n, _, _ := s.doorbells.Drain(out[:]); n != 1 || out[0] != 5 {
		t.Fatal(n, out)
	}
	if !s.doorbells.Sleep() {
		t.Fatal("doorbell left")
	}
	c.Doorbell(6)
	if n, _ := unix.Poll(poll, 10000); n != 1 {
		t.Error("a loop that sleeps was not woken")
	}
	if n := allocs(func() {
		s.doorbells.Drain(out[:])
		s.doorbells.Sleep()
		c.Doorbell(7)
	}); n != 0 {
		t.Errorf("%v allocations a doorbell with wake", n)
	}
}

func TestWaitCQ(t *testing.T) {
	h, c := pair(t, ServerConfig{}, Options{})
	s := h.only(t)
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
	eventually(t, "waiter sleeps", asleep)
	s.push(t, q.Handle, ring.CQE{})
	if got := <-w; got.err != nil || got.seq != 1 {
		t.Errorf("event: %+v", got)
	}

	cctx, cancel := context.WithCancel(ctx)
	w = start(cctx)
	eventually(t, "waiter sleeps", asleep)
	cancel()
	if got := <-w; !isCode(got.err, command.Canceled) {
		t.Errorf("canceled: %+v", got)
	}
	dctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if got := <-start(dctx); !isCode(got.err, command.TimedOut) {
		t.Errorf("deadline: %+v", got)
	}

	w = start(ctx)
	eventually(t, "waiter sleeps", asleep)
	if err := c.Destroy(ctx, command.KindCQ, q.Handle); err != nil {
		t.Fatal(err)
	}
	if got := <-w; !isCode(got.err, command.NotFound) {
		t.Errorf("destroyed: %+v", got)
	}
}

// A driver that goes away ends every wait with the reason.
func TestDriverGoes(t *testing.T) {
	h := &fakeHost{}
	srv, path := serve(t, h, ServerConfig{})
	c := dial(t, path, Options{})
	q, err := c.CreateCQ(ctx, command.CreateCQ{Depth: 16})
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 3)
	go func() { _, err := c.WaitCQ(ctx, q.Handle, 0); errs <- err }()
	go func() { _, err := c.Events(ctx, make([]command.Event, 1)); errs <- err }()
	go func() { errs <- c.CMListen(ctx, 1, 1) }()
	eventually(t, "listen is under way", func() bool { c.calls.mu.Lock(); defer c.calls.mu.Unlock(); return len(c.calls.waiting) == 1 })
	srv.Close()
	for range 3 {
		if err := <-errs; !isCode(err, command.Removed) && !isCode(err, command.Canceled) {
			t.Errorf("%v", err)
		}
	}
	_, err = c.AllocPD(ctx, 0)
	if !isCode(err, command.Removed) || !bytes.Contains([]byte(err.Error()), []byte("stopping")) {
		t.Errorf("after: %v", err)
	}
	if n := h.count(); n != 0 {
		t.Errorf("%d sessions left", n)
	}
}

func TestCancelReachesTheDriver(t *testing.T) {
	_, c := pair(t, ServerConfig{}, Options{})
	cctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- c.CMListen(cctx, 1, 1) }()
	eventually(t, "listen is under way", func() bool { c.calls.mu.Lock(); defer c.calls.mu.Unlock(); return len(c.calls.waiting) == 1 })
	if _, err := c.AllocPD(ctx, 0); err != nil { // another request meanwhile
		t.Error(err)
	}
	cancel()
	if err := <-done; err == nil || err.Error() != "canceled: listen was canceled" {
		t.Errorf("%v: want the driver's answer", err)
	}
}

// Events arrive in order, and no more are under way than the program granted.
func TestEventsInOrderWithBackPressure(t *testing.T) {
	h, c := pair(t, ServerConfig{}, Options{})
	s := h.only(t)
	const n = 3000
	for i := range n {
		s.events <- command.Event{Type: command.EventGIDChange, Context: uint64(i)}
	}
	eventually(t, "the credit is used up", func() bool {
		c.events.mu.Lock()
		defer c.events.mu.Unlock()
		return len(c.events.list) == eventCredits
	})
	if left := len(s.events); left < n-eventCredits-maxPush {
		t.Errorf("%d of %d events left in the driver", left, n)
	}
	out := make([]command.Event, 50)
	for i := 0; i < n; {
		k, err := c.Events(ctx, out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range out[:k] {
			if e.Context != uint64(i) {
				t.Fatalf("event %d at place %d", e.Context, i)
			}
			i++
		}
	}
	cctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := c.Events(cctx, out); !isCode(err, command.TimedOut) {
		t.Errorf("%v", err)
	}
}

func TestSegments(t *testing.T) {
	h, c := pair(t, ServerConfig{SegmentBytes: 1 << 20, MaxSegments: 2}, Options{})
	s := h.only(t)
	id, mem, err := c.AllocSegment(ctx, 100_000)
	if err != nil || len(mem) != 100_000 {
		t.Fatal(len(mem), err)
	}
	m, err := c.RegisterMemory(ctx, command.RegisterMemory{Length: 1000, Segment: id, SegmentOffset: 99_000})
	if err != nil || m.Path != PathMapped {
		t.Fatal(m, err)
	}
	copy(mem[99_000:], "from the program")
	got := s.region(m.Handle)
	if !bytes.HasPrefix(got.Bytes, []byte("from the program")) || len(got.Bytes) != 1000 {
		t.Errorf("driver sees %q", got.Bytes[:20])
	}
	for _, r := range []command.RegisterMemory{
		{Length: 1, Segment: id + 1}, {Length: 2, Segment: id, SegmentOffset: 102_399},
		{Length: ^uint64(0), Segment: id, SegmentOffset: 2}, {Length: 1, Segment: id, SegmentOffset: ^uint64(0)},
	} {
		if _, err := c.RegisterMemory(ctx, r); err == nil {
			t.Errorf("%+v: accepted", r)
		}
	}
	if _, _, err := c.AllocSegment(ctx, 1<<20); !isCode(err, command.Exhausted) {
		t.Errorf("past the budget: %v", err)
	}
	if _, _, err := c.AllocSegment(ctx, 1<<60); !isCode(err, command.Invalid) {
		t.Errorf("huge: %v", err)
	}
	// Freed while a region lies in it: the driver keeps its mapping until then.
	if err := c.FreeSegment(id); err != nil {
		t.Fatal(err)
	}
	got.Bytes[0]++
	if _, err := c.RegisterMemory(ctx, command.RegisterMemory{Length: 1, Segment: id}); !isCode(err, command.NotFound) {
		t.Errorf("region in a freed segment: %v", err)
	}
	if err := c.Destroy(ctx, command.KindMemory, m.Handle); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.AllocSegment(ctx, 1<<20); err != nil {
		t.Errorf("the whole budget after all was freed: %v", err)
	}
	if err := c.FreeSegment(99); !isCode(err, command.NotFound) {
		t.Errorf("%v", err)
	}
}

// ordinary makes memory of the program that is in no segment. It is not on the Go
// heap: the race detector does not see the order that shared memory makes.
func ordinary(t *testing.T, n int) ([]byte, uint64) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b, uint64(uintptr(unsafe.Pointer(&b[0])))
}

// What one program takes of the common budget another does not get, until it is
// given back, also by its end.
func TestSegmentsOfAllPrograms(t *testing.T) {
	h := &fakeHost{}
	_, path := serve(t, h, ServerConfig{TotalSegmentBytes: 1 << 20})
	a, b := dial(t, path, Options{}), dial(t, path, Options{})
	if _, _, err := a.AllocSegment(ctx, 600_000); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.AllocSegment(ctx, 600_000); !isCode(err, command.Exhausted) {
		t.Errorf("past the common budget: %v", err)
	}
	a.Close()
	eventually(t, "the budget is back", func() bool {
		_, _, err := b.AllocSegment(ctx, 600_000)
		return err == nil
	})
}

func TestProcessVM(t *testing.T) {
	h, c := pair(t, ServerConfig{}, Options{Path: PathProcessVM})
	if c.MemoryPath() != PathProcessVM || h.only(t).cfg.MemoryPath != "process_vm" {
		t.Fatalf("path %d %s", c.MemoryPath(), h.only(t).cfg.MemoryPath)
	}
	b, addr := ordinary(t, 100_000)
	m, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: addr, Length: uint64(len(b))})
	if err != nil || m.Path != PathProcessVM {
		t.Fatal(m, err)
	}
	a := h.only(t).region(m.Handle).Remote
	if err := a.Write(addr+10, []byte("hello")); err != nil || string(b[10:15]) != "hello" {
		t.Error(err, b[10:15])
	}
	got := make([]byte, 5)
	if err := a.Read(got, addr+10); err != nil || string(got) != "hello" {
		t.Error(err, got)
	}
	if err := a.Read(got, 8); !errors.Is(err, memory.ErrGone) {
		t.Errorf("unmapped: %v", err)
	}
	if _, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: 8, Length: 8}); !isCode(err, command.Invalid) {
		t.Errorf("register what is not there: %v", err)
	}
	if n := allocs(func() { _ = a.Read(got, addr) }); n != 0 {
		t.Errorf("%v allocations a copy", n)
	}
}

// transfers runs deferred copies to their end.
func transfers(t *testing.T, d memory.Deferred, list ...memory.Transfer) []memory.Finished {
	t.Helper()
	var done []memory.Finished
	out := make([]memory.Finished, 8)
	total := len(list)
	eventually(t, "copies", func() bool {
		for len(list) > 0 && d.Start(&list[0]) {
			list = list[1:]
		}
		for n := d.Finish(out); n > 0; n = d.Finish(out) {
			done = append(done, out[:n]...)
		}
		return len(done) == total
	})
	return done
}

func TestCopier(t *testing.T) {
	h, c := pair(t, ServerConfig{}, Options{Path: PathCopier})
	if c.MemoryPath() != PathCopier || h.only(t).cfg.MemoryPath != "copier" {
		t.Fatalf("path %d %s", c.MemoryPath(), h.only(t).cfg.MemoryPath)
	}
	b, addr := ordinary(t, 64)
	m, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: addr, Length: uint64(len(b))})
	if err != nil || m.Path != PathCopier {
		t.Fatal(m, err)
	}
	d := h.only(t).region(m.Handle).Remote.(memory.Deferred)
	if d.Blocking() || d.Write(addr, b) == nil {
		t.Error("a copier must not block the loop")
	}
	b[32] = 40
	read := make([]byte, 5)
	done := transfers(t, d,
		memory.Transfer{Kind: memory.CopyWrite, Tag: 1, Addr: addr + 3, Data: []byte("hello"), Last: true},
		memory.Transfer{Kind: memory.CopyRead, Tag: 2, Addr: addr + 3, Data: read},
		memory.Transfer{Kind: memory.CopyFetchAdd, Tag: 3, Addr: addr + 32, Swap: 2},
		memory.Transfer{Kind: memory.CopyCompareSwap, Tag: 4, Addr: addr + 32, Compare: 42, Swap: 7},
		memory.Transfer{Kind: memory.CopyCompareSwap, Tag: 5, Addr: addr + 32, Compare: 42, Swap: 9},
		memory.Transfer{Kind: memory.CopyRead, Tag: 6, Addr: 8, Data: make([]byte, 8)},
		memory.Transfer{Kind: memory.CopyFetchAdd, Tag: 7, Addr: addr + 33},
		memory.Transfer{Kind: memory.CopyRead, Tag: 8, Addr: addr, Data: make([]byte, d.Limit()+1)},
		memory.Transfer{Kind: 77, Tag: 9, Addr: addr},
	)
	if len(done) != 9 {
		t.Fatalf("%d ended", len(done))
	}
	for i, want := range []struct {
		old  uint64
		fail bool
	}{{0, false}, {0, false}, {40, false}, {42, false}, {7, false}, {0, true}, {0, true}, {0, true}, {0, true}} {
		f := done[i]
		if f.Tag != uint64(i+1) || f.Old != want.old || (f.Err != nil) != want.fail || want.fail && !errors.Is(f.Err, memory.ErrGone) {
			t.Errorf("%d: %+v, want %+v", i, f, want)
		}
	}
	if string(read) != "hello" || b[32] != 7 {
		t.Errorf("%q %d", read, b[32])
	}
}

func TestCopierMany(t *testing.T) {
	h, c := pair(t, ServerConfig{}, Options{Path: PathCopier})
	b, addr := ordinary(t, 1<<20)
	m, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: addr, Length: uint64(len(b))})
	if err != nil {
		t.Fatal(err)
	}
	d := h.only(t).region(m.Handle).Remote.(memory.Deferred)
	src := make([]byte, len(b))
	for i := range src {
		src[i] = byte(i * 7 >> 3)
	}
	var list []memory.Transfer
	for off := 0; off < len(src); off += 5000 {
		piece := src[off:min(off+5000, len(src))]
		list = append(list, memory.Transfer{Kind: memory.CopyWrite, Tag: uint64(off), Addr: addr + uint64(off), Data: piece})
	}
	for _, f := range transfers(t, d, list...) {
		if f.Err != nil {
			t.Fatal(f.Err)
		}
	}
	if !bytes.Equal(b, src) {
		t.Error("bytes differ")
	}
}

// A copier that hangs costs its program only.
func TestCopierHangs(t *testing.T) {
	h := &fakeHost{}
	_, path := serve(t, h, ServerConfig{CopierTimeout: 50 * time.Millisecond})
	c := dial(t, path, Options{Path: PathCopier})
	b, addr := ordinary(t, 8)
	m, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: addr, Length: 8})
	if err != nil {
		t.Fatal(err)
	}
	s := h.only(t)
	d := s.region(m.Handle).Remote.(memory.Deferred)
	c.stop.Store(true) // its copier ends soon, in the middle of things as it were
	eventually(t, "a copy fails", func() bool {
		done := transfers(t, d, memory.Transfer{Kind: memory.CopyWrite, Addr: addr, Data: b})
		return len(done) == 1 && errors.Is(done[0].Err, memory.ErrGone)
	})
	eventually(t, "disconnected", func() bool { return h.count() == 0 })
	if _, err := c.AllocPD(ctx, 0); !isCode(err, command.Removed) || !bytes.Contains([]byte(err.Error()), []byte("copier")) {
		t.Errorf("%v", err)
	}
}

func TestForcedPathIsKept(t *testing.T) {
	h := &fakeHost{}
	_, path := serve(t, h, ServerConfig{Path: PathCopier})
	if c := dial(t, path, Options{}); c.MemoryPath() != PathCopier {
		t.Errorf("path %d", c.MemoryPath())
	}
	if _, err := Dial(ctx, path, Options{Path: PathProcessVM}); !isCode(err, command.Unsupported) {
		t.Errorf("%v", err)
	}
	t.Setenv(PathVariable, "tea")
	if _, err := Dial(ctx, path, Options{}); !isCode(err, command.Invalid) {
		t.Errorf("%v", err)
	}
	t.Setenv(PathVariable, "copier")
	if c := dial(t, path, Options{}); c.MemoryPath() != PathCopier {
		t.Errorf("path %d", c.MemoryPath())
	}
}

// After Close what is mapped stays readable for goroutines that still look.
func TestUseAfterClose(t *testing.T) {
	_, c := pair(t, ServerConfig{}, Options{})
	q, err := c.CreateCQ(ctx, command.CreateCQ{Depth: 4})
	if err != nil {
		t.Fatal(err)
	}
	_, mem, err := c.AllocSegment(ctx, 4096)
	if err != nil {
		t.Fatal(err)
	}
	a := slices.Clone(*c.arenas.Load())
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if a[0][0] != 0 || mem[0] != 0 {
		t.Error("old bytes")
	}
	c.Doorbell(1)
	if _, err := c.WaitCQ(ctx, q.Handle, 0); !isCode(err, command.Canceled) {
		t.Errorf("%v", err)
	}
	if _, _, err := c.AllocSegment(ctx, 1); !isCode(err, command.Canceled) {
		t.Errorf("%v", err)
	}
}

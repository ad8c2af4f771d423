package scale

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// Programs that attach, connect, carry traffic and are killed while doing so leave nothing in the driver, and their
// peers' QPs end in error.
func TestKilledPrograms(t *testing.T) {
	kills := size(1000, 48)
	for _, path := range []string{"auto", "wire"} {
		t.Run(path, func(t *testing.T) {
			d := startDriver(t, path)
			killOne(t, d, 0) // so that everything that is made only once exists
			d.settled(t)
			before := measure()
			started := time.Now()
			var next atomic.Int32
			var slowest atomic.Int64
			var wg sync.WaitGroup
			for range 4 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for !t.Failed() {
						n := int(next.Add(1))
						if n > kills/2 {
							return
						}
						took := int64(killOne(t, d, n))
						for old := slowest.Load(); took > old && !slowest.CompareAndSwap(old, took); old = slowest.Load() {
						}
					}
				}()
			}
			wg.Wait()
			d.settled(t)
			var after usage
			settled := await.Until(func() bool { after = measure(); return after.within(before) })
			t.Logf("%d killed in %.1f s, slowest peer told after %v", kills/2, time.Since(started).Seconds(),
				time.Duration(slowest.Load()).Round(time.Millisecond))
			t.Logf("before: %v", before)
			t.Logf("after:  %v", after)
			if !settled {
				t.Errorf("something is left behind: before %v, after %v", before, after)
			}
		})
	}
}

// sourcePorts is how many sockets the adapters of a driver bind when they are first needed, and then keep: one each,
// for their connection managers. Those of connections go with them.
const sourcePorts = 2

// readAhead is the memory that the engines keep for reuse in buffers, 64 KB each, into which they read other
// processes' memory ahead: one for each request in progress, of which the four programs at a time have at most 4
// times 3 QPs times 4.
const readAhead = 4 * 3 * 4 * 64 << 10

// threadMaps is how many mappings a thread has under the race detector: its stack, malloc's memory for it, and the
// detector's own. Other mappings are in Go's heap.
const threadMaps = 8

// within checks that nothing has grown except what the adapters bind once, what the engines keep for reuse, and what
// the Go runtime keeps, including threads.
func (u usage) within(start usage) bool {
	maps := start.Maps + 16 + threadMaps*max(u.Threads-start.Threads, 0)
	return u.FDs <= start.FDs+sourcePorts && u.Goroutines <= start.Goroutines && u.Maps <= maps &&
		u.Heap <= start.Heap+readAhead+2<<20 && u.RSS <= start.RSS+32<<20
}

// killOne has a program connect to another one, kills it amid writes and reads, and returns how long the peer's QPs
// took to end. Every other program uses its own heap rather than shared memory.
func killOne(t *testing.T, d *testDriver, n int) time.Duration {
	survivor, victim := d.worker(t, 0), d.worker(t, 1)
	if survivor == nil || victim == nil {
		return 0
	}
	args := endpointArgs{QPs: 1 + n%3, Depth: 4, Memory: 256 << 10, Register: n%2 == 1}
	var at string
	var seconds float64
	for _, c := range []struct {
		w            *worker
		method       string
		args, result any
	}{
		{survivor, "endpoint", args, nil},
		{victim, "endpoint", args, nil},
		{survivor, "listen", nil, &at},
	} {
		if err := c.w.try(c.method, c.args, c.result); err != nil {
			t.Error(err)
		}
	}
	if err := victim.try("connect", at, &seconds); err != nil {
		t.Errorf("kill %d: %v", n, err)
		return 0
	}
	if err := survivor.try("accepted", struct{}{}, nil); err != nil {
		t.Errorf("kill %d: %v", n, err)
		return 0
	}
	run := struct{ Size int }{64 << 10}
	for _, w := range []*worker{victim, survivor} {
		if err := w.try("run", run, nil); err != nil {
			t.Errorf("kill %d: %v", n, err)
		}
	}
	victim.kill(t)
	// Posted requests keep the survivor's QP busy: it ends by the disconnect that the driver sends for the dead
	// program, or because its requests are not answered in time.
	if err := survivor.try("ended", struct{ Seconds float64 }{await.Limit.Seconds()}, &seconds); err != nil {
		t.Errorf("kill %d: %v", n, err)
	}
	survivor.end(t)
	return time.Duration(seconds * float64(time.Second))
}

// worker is attach, for goroutines other than the test's own.
func (d *testDriver) worker(t *testing.T, side int) *worker {
	w, err := start(t)
	if err == nil {
		err = w.try("open", openArgs{Socket: d.Config().Socket, Addr: d.addrs[side]}, nil)
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	return w
}

// settled waits until the driver knows no program and has no object left.
func (d *testDriver) settled(t *testing.T) {
	t.Helper()
	await.Eventually(t, "programs and objects gone", func() bool {
		s := d.Status()
		left := len(s.Programs)
		for _, a := range s.Adapters {
			left += len(a.QPs)
			for _, n := range a.Objects {
				left += n
			}
		}
		return left == 0
	})
}

// If a program that embeds its adapter is killed, nobody can send a disconnect for it: its peer finds out by its own
// retries, within their time-out.
func TestKilledHost(t *testing.T) {
	beside(t)
	addrs := testbed.Addrs()
	survivor, victim := spawn(t), spawn(t)
	survivor.call(t, "open", openArgs{Addr: addrs[0]}, nil)
	victim.call(t, "open", openArgs{Addr: addrs[1]}, nil)
	args := endpointArgs{QPs: 4, Depth: 4, Memory: 256 << 10}
	survivor.call(t, "endpoint", args, nil)
	victim.call(t, "endpoint", args, nil)
	pair(t, survivor, victim)
	run := struct{ Size int }{64 << 10}
	victim.call(t, "run", run, nil)
	survivor.call(t, "run", run, nil)
	victim.kill(t)
	var seconds float64
	survivor.call(t, "ended", struct{ Seconds float64 }{await.Limit.Seconds()}, &seconds)
	t.Logf("the peer's QPs ended after %.2f s", seconds)
}

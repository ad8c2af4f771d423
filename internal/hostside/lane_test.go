package hostside

import (
	"bytes"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// apart is an end with two queues, which may be written to by threads of their own.
type apart struct {
	end
	mu       sync.Mutex
	numbers  [2][]uint32 // of the frames, in order
	threaded int         // frames that a thread of a queue wrote
	full     bool
}

func (e *apart) Queues() int { return 2 }
func (e *apart) take(q int, frame []byte, threaded bool) Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.full {
		return Full
	}
	if threaded {
		e.threaded++
	}
	e.numbers[q] = append(e.numbers[q], binary.BigEndian.Uint32(frame[len(frame)-4:]))
	return Taken
}

func (e *apart) Write(q int, pieces [][]byte) Outcome {
	return e.take(q, bytes.Join(pieces, nil), false)
}
func (e *apart) Queue(q int) Queue { return apartQueue{e, q} }
func (e *apart) Lend(int, bool)    {}

// apartQueue is a queue of apart, of which nothing is read.
type apartQueue struct {
	e *apart
	q int
}

func (q apartQueue) Write(frame []byte) Outcome { return q.e.take(q.q, frame, true) }
func (apartQueue) Read([]byte) int              { return 0 }
func (apartQueue) Descriptor() int              { return -1 }

func (e *apart) set(full bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.full = full
}

func (e *apart) count() (n, threaded int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.numbers[0]) + len(e.numbers[1]), e.threaded
}

// threads is the side of an apart end.
type threads struct {
	*Side
	end  *apart
	t    *testing.T
	now  clock.Time
	sent [2]uint32
}

func newThreads(t *testing.T, change func(*ethernet.Config)) *threads {
	x := &threads{end: &apart{end: end{virtio: true}}, t: t}
	x.Side = New(x.end, nil, func() {})
	c := ethernet.Defaults(catalogue.MLX5)
	c.MAC, c.Host, c.NumRSSQueues = macA, x.Abilities(), 2
	change(&c)
	f, err := ethernet.New(c, x.Side)
	if err == nil {
		err = x.Attach(f)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Detach)
	return x
}

// indicate gives a queue numbered frames, those again that were not taken, and waits where none are.
func (x *threads) indicate(q, n int) {
	for n > 0 {
		frame := binary.BigEndian.AppendUint32(make([]byte, 100), x.sent[q])
		list := []ethernet.Packet{{Parts: [][]byte{frame[:20], frame[20:]}}}
		if x.Indicate(x.now, q, list) == 1 {
			x.sent[q]++
			n--
		} else {
			time.Sleep(time.Millisecond) // the thread's turn
		}
		clear(frame) // it is the wire's again
	}
}

// turns gives queues frames over some of the times in which busy queues are looked for.
func (x *threads) turns(n int, queues ...int) {
	for range n {
		for _, q := range queues {
			x.indicate(q, 2*busyFrames)
		}
		x.now = x.now.Add(busyTime)
	}
}

// in waits until all frames were written, in order.
func (x *threads) in() (threaded int) {
	x.t.Helper()
	await.Eventually(x.t, "all frames are written", func() bool {
		n, _ := x.end.count()
		return n == int(x.sent[0]+x.sent[1])
	})
	for q, list := range x.end.numbers {
		for i, n := range list {
			if n != uint32(i) {
				x.t.Fatalf("queue %d: frame %d comes at place %d", q, n, i)
			}
		}
	}
	_, threaded = x.end.count()
	return threaded
}

// TestLanes: while one queue alone is busy the caller writes its frames, and as soon as two are each has its thread; then the caller
// again. The frames of a queue stay in order, and are counted.
func TestLanes(t *testing.T) {
	x := newThreads(t, static)
	x.turns(50, 0)
	x.turns(50, 1)
	if n := x.in(); n != 0 || x.lanes.of != nil {
		t.Errorf("%d frames of one busy queue at a time are written by a thread", n)
	}
	x.turns(50, 0, 1)
	both := x.in()
	if both < 90*2*busyFrames {
		t.Errorf("%d frames are written by threads while two queues are busy, want nearly %d", both, 100*2*busyFrames)
	}
	x.turns(4, 0) // what is left of the time before counts as that of two
	x.in()
	before := x.in()
	x.turns(50, 0)
	if n := x.in(); n != before {
		t.Errorf("%d frames are written by a thread though one queue alone is busy", n-before)
	}
	x.indicate(0, 1) // now and then
	x.now = x.now.Add(time.Second)
	x.indicate(1, 1)
	c := x.Counters()
	if n, threaded := x.end.count(); c.Written != uint64(n) || c.Threaded != uint64(threaded) {
		t.Errorf("%+v, but %d and %d by threads", *c, n, threaded)
	}
}

// static is a profile that keeps queues where they are.
func static(c *ethernet.Config) { c.RSSProfile = int(rss.NUMAStatic) }

// TestLanes_Processors: where there are two processors, queues have threads only with the profiles that keep them where they are.
func TestLanes_Processors(t *testing.T) {
	for _, c := range []struct {
		profile    rss.Profile
		processors int
		threads    bool
	}{{rss.Closest, 2, false}, {rss.NUMA, 2, false}, {rss.ClosestStatic, 2, true}, {rss.Closest, 3, true}} {
		x := newThreads(t, func(f *ethernet.Config) {
			f.RSSProfile = int(c.profile)
			for n := range c.processors {
				f.Machine = append(f.Machine, rss.Processor{Number: n})
			}
		})
		x.turns(20, 0, 1)
		if n := x.in(); (n > 0) != c.threads {
			t.Errorf("%+v: threads write %d frames", c, n)
		}
	}
}

// TestLanes_Working: of two busy queues only as many have threads as may work at a time (WinOF 5.50, 4.6.8: MaximumWorkingThreads).
func TestLanes_Working(t *testing.T) {
	x := newThreads(t, func(c *ethernet.Config) { static(c); c.MaximumWorkingThreads = 1 })
	x.turns(20, 0, 1)
	if n := len(x.lanes.of); n != 1 {
		t.Errorf("%d queues have threads, want 1", n)
	}
}

// TestLanes_Full: while a host has no room its queue's thread waits with what it has, and the rest waits in the function; when there
// is room again all comes in order. A host that never has any does not hold up the end of its function.
func TestLanes_Full(t *testing.T) {
	x := newThreads(t, static)
	x.turns(3, 0, 1)
	x.in()
	x.end.set(true)
	x.indicate(0, laneFrames)
	if x.Indicate(x.now, 0, []ethernet.Packet{{Parts: [][]byte{make([]byte, 100)}}}) != 0 {
		t.Error("more frames are taken than there is room for")
	}
	if x.full != 1 || x.Deadline() > x.now.Add(firstRetry) {
		t.Errorf("full queues %b, looked at again at %v", x.full, x.Deadline())
	}
	x.end.set(false)
	await.Eventually(t, "there is room again", func() bool { return x.lanes.of[0].empty() })
	x.end.set(true)
	x.indicate(1, laneFrames)
	done := make(chan struct{})
	go func() { x.Detach(); close(done) }()
	if !await.Until(func() bool { return isClosed(done) }) {
		t.Fatal("Detach waits for a host that has no room")
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

package hostside

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/os/processors"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// pairs is an end with two queues, each of which is one end of a pair of datagram sockets.
type pairs struct {
	end
	hosts, queues [2]int
	lent          uint64
	owner         int // frames that the owner has read
}

func newPairs(t *testing.T) *pairs {
	e := &pairs{end: end{virtio: true}}
	for q := range e.hosts {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		e.hosts[q], e.queues[q] = fds[0], fds[1]
		t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	}
	return e
}

func (e *pairs) Queues() int       { return 2 }
func (e *pairs) Queue(q int) Queue { return tapQueue(e.queues[q]) }
func (e *pairs) Ready() uint64     { return 3 &^ e.lent }

func (e *pairs) Lend(q int, on bool) {
	e.lent &^= 1 << q
	if on {
		e.lent |= 1 << q
	}
}

func (e *pairs) Read(q int, b []byte) int {
	n := max(tapQueue(e.queues[q]).Read(b), 0)
	if n > 0 {
		e.owner++
	}
	return n
}

// readers is a host with two queues at a port, beside one that gets all it sends.
type readers struct {
	*bed
	*pairs
	sent [2]uint32
	news chan struct{}
}

func newReaders(t *testing.T) *readers {
	x := &readers{bed: &bed{Port: &port.Port{}, t: t, out: make([]frame.Out, 128)}, pairs: newPairs(t), news: make(chan struct{}, 1)}
	w := &port.Wire{}
	x.ends[1] = &end{virtio: true, room: -1}
	x.side[0] = New(x.pairs, nil, func() {
		select {
		case x.news <- struct{}{}:
		default:
		}
	})
	x.side[1] = New(x.ends[1], nil, nil)
	x.plug(w, x.side[0], macA, func(c *ethernet.Config) { static(c); c.NumRSSQueues = 2 })
	x.plug(w, x.side[1], macB, nil)
	t.Cleanup(x.side[0].Detach)
	return x
}

// send has the host send numbered frames by a queue, each of so many bytes of TCP, as far as there is room for them.
func (x *readers) send(q, n, size int) (sent int) {
	for range n {
		segment := 0
		if size > 1460 {
			segment = 1000
		}
		whole, _ := tcp(size, segment)
		data := whole[offload.HeaderLen+54:]
		data[0] = byte(q)
		binary.BigEndian.PutUint32(data[1:], x.sent[q])
		if _, err := unix.Write(x.hosts[q], whole); err != nil {
			return sent
		}
		x.sent[q]++
		sent++
	}
	return sent
}

// arrive gives the port turns until all has arrived, in the order of each queue.
func (x *readers) arrive() {
	x.t.Helper()
	await.Eventually(x.t, "all frames arrive", func() bool {
		for x.turn() {
		}
		return len(x.ends[1].got) == int(x.sent[0]+x.sent[1])
	})
	var next [2]uint32
	for _, got := range x.ends[1].got {
		data := got[offload.HeaderLen+54:]
		if q := data[0]; binary.BigEndian.Uint32(data[1:]) != next[q] {
			x.t.Fatalf("queue %d: frame %d comes at place %d", q, binary.BigEndian.Uint32(data[1:]), next[q])
		} else {
			next[q]++
		}
	}
}

// rounds has queues send, with time between for them to be found busy or not.
func (x *readers) rounds(n int, queues ...int) {
	for i := range n {
		for _, q := range queues {
			if sent := x.send(q, busyFrames, 100+i*37%1300); sent < busyFrames {
				x.t.Fatalf("the queue has room for %d frames", sent)
			}
		}
		x.arrive()
		x.now = x.now.Add(busyTime)
	}
}

// TestLanes_Read: while one queue alone is busy the owner reads, and as soon as two are each one's thread does; then the owner again.
// The frames of a queue stay in order, long and short ones.
func TestLanes_Read(t *testing.T) {
	x := newReaders(t)
	x.rounds(20, 0)
	x.rounds(20, 1)
	if x.side[0].Counters().Threaded != 0 || x.side[0].lanes.of != nil {
		t.Errorf("threads read while one queue is busy: %+v", *x.side[0].Counters())
	}
	x.owner = 0
	x.rounds(50, 0, 1)
	if c := x.side[0].Counters(); x.owner > 10*busyFrames || c.Threaded != uint64(100*busyFrames-x.owner) {
		t.Errorf("while two queues are busy threads read %d of %d frames, the owner %d", c.Threaded, 100*busyFrames, x.owner)
	}
	x.rounds(4, 0) // what is left of the time before counts as that of two
	await.Eventually(t, "the queues are the owner's", func() bool { x.turn(); return x.lent == 0 })
	x.owner = 0
	x.rounds(20, 0)
	if x.owner != 20*busyFrames {
		t.Errorf("one busy queue: the owner reads %d of %d frames", x.owner, 20*busyFrames)
	}
	if c := x.side[0].Counters(); c.Read != uint64(x.sent[0]+x.sent[1]) {
		t.Errorf("%d frames were read, want %d", c.Read, x.sent[0]+x.sent[1])
	}
}

// TestLanes_ReadBounded: while the port has no turn threads read no more than they have buffers for, and the host's own queue fills;
// then all goes on, in order. The end of the function does not wait for what was not taken.
func TestLanes_ReadBounded(t *testing.T) {
	x := newReaders(t)
	x.rounds(5, 0, 1)
	most := (laneLarge + laneSmall) * 2
	for q := range x.hosts {
		for x.send(q, 1, 3000) == 1 {
			if x.sent[q] > 10000 {
				t.Fatal("they read without end")
			}
			time.Sleep(10 * time.Microsecond) // the thread's turn
		}
	}
	for _, l := range x.side[0].lanes.of {
		if n := l.filled.len(); n > most/2 {
			t.Errorf("%d frames wait, of %d buffers", n, most/2)
		}
	}
	x.arrive()
	x.rounds(5, 0, 1)
	x.send(0, 5, 100)
	x.side[0].Detach()
}

// TestLanes_ReadAsleep: nothing is read of a host that sleeps, and everything when it is awake.
func TestLanes_ReadAsleep(t *testing.T) {
	x := newReaders(t)
	x.rounds(5, 0, 1)
	if err := x.side[0].Sleep(nil); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "the threads leave off", func() bool {
		return !slices.ContainsFunc(x.side[0].lanes.of, func(l *lane) bool { return l.reader.Load() != ownerReads })
	})
	before := len(x.ends[1].got)
	x.send(0, 4, 100)
	x.send(1, 4, 100)
	for range 100 {
		x.turn()
	}
	if n := len(x.ends[1].got); n != before {
		t.Errorf("%d frames of a host that sleeps arrive", n-before)
	}
	x.side[0].Wake()
	x.arrive()
}

// TestLanes_FewBuffers: threads read only where each has a buffer for it.
func TestLanes_FewBuffers(t *testing.T) {
	x := newReaders(t)
	x.side[0].large.made = 3 // as with many queues, and a small NumTcb
	x.rounds(20, 0, 1)
	if x.owner != 40*busyFrames || x.lent != 0 {
		t.Errorf("with 3 buffers for 2 queues the owner reads %d of %d frames", x.owner, 40*busyFrames)
	}
}

// brokenQueue is of an interface that was deleted.
type brokenQueue struct{ tapQueue }

func (brokenQueue) Read([]byte) int { return -1 }

// TestLane_Broken: a thread leaves a queue with which something is wrong to the owner, once and for all, and says so.
func TestLane_Broken(t *testing.T) {
	e := newPairs(t)
	news := make(chan struct{}, 1)
	l, err := startLane(brokenQueue{tapQueue(e.queues[0])}, func() { news <- struct{}{} }, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.large.push(&buffer{b: make([]byte, largeSize)})
	l.lend()
	l.ring()
	<-news
	if !l.left() || l.reader.Load() != broken {
		t.Errorf("the reader is %d", l.reader.Load())
	}
	l.end()
}

// TestLanes_NoAllocation: reading by threads allocates nothing for a frame.
func TestLanes_NoAllocation(t *testing.T) {
	x := newReaders(t)
	x.rounds(10, 0, 1)
	whole, _ := tcp(200, 0)
	send := func() {
		want := x.side[0].Counters().Read + 2
		for _, fd := range x.hosts {
			if _, err := unix.Write(fd, whole); err != nil {
				t.Fatal(err)
			}
		}
		for {
			x.side[0].Pull(x.now)
			x.Advance(x.now)
			x.Transmit(x.now, x.out)
			if x.side[0].Counters().Read >= want {
				break
			}
			<-x.news
		}
		x.ends[1].got = x.ends[1].got[:0]
		x.now = x.now.Add(busyTime / 16)
	}
	x.ends[1].gone = true // it keeps nothing
	if n := testing.AllocsPerRun(200, send); n > 0.5 {
		t.Errorf("%v allocations for two frames", n)
	}
}

// TestLane_Processor: the thread of a queue runs on the queue's processor alone, and others stay free.
func TestLane_Processor(t *testing.T) {
	all := processors.List()
	last := all[len(all)-1].Number
	at := make(chan []int, 1)
	l, err := startLane(taker(func() {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Error(err)
		}
		var list []int
		for n := range 64 * len(set) {
			if set.IsSet(n) {
				list = append(list, n)
			}
		}
		at <- list
	}), nil, last)
	if err != nil {
		t.Fatal(err)
	}
	l.add([][]byte{{1}})
	l.ring()
	if got := <-at; !slices.Equal(got, []int{last}) {
		t.Errorf("it runs on %v, want %d", got, last)
	}
	l.end()
	if !l.empty() || l.written.Load() != 1 {
		t.Errorf("%d frames are written, want 1", l.written.Load())
	}
}

// taker is a queue that takes all.
type taker func()

func (q taker) Write([]byte) Outcome { q(); return Taken }
func (taker) Read([]byte) int        { return 0 }
func (taker) Descriptor() int        { return -1 }

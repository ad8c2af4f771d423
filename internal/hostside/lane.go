package hostside

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/os/processors"
	"github.com/softvpi/softvpi/internal/wait"
)

// Queue is a queue of an end as its thread has it, for as long as the end has the queue. It may be used by any thread, but by one
// at a time.
type Queue interface {
	// Write writes a whole frame, with its virtio header, not beside End.Write for the queue.
	Write(frame []byte) Outcome
	// Read reads the next frame, not beside End.Read for the queue, and returns its length. 0: none waits; -1: something is wrong
	// with the queue, which End.Read finds out.
	Read(b []byte) int
	// Descriptor becomes readable when frames wait.
	Descriptor() int
}

const (
	// laneFrames is how many frames wait for a queue's thread; what does not fit waits in the function's ring.
	laneFrames = 32
	// laneBurst is how many frames a thread writes, and then reads, before it looks again at what it is to do.
	laneBurst = 16
	// laneLarge and laneSmall are how many buffers a thread has to read into, at most.
	laneLarge, laneSmall = 4, 64
)

// Who reads a queue.
const (
	ownerReads  = iota
	threadReads // until it is recalled
	recalled    // the thread is to leave off; when it has, the owner reads
	broken      // the thread has, since something is wrong with the queue
)

// lane is the thread of a queue of the host's, on the queue's processor: it writes frames, and reads them while that is lent to it.
// One other thread, the owner, puts in what it writes and takes what it has read. While a buffer is missing nothing is read, so
// that the host's own queue fills.
type lane struct {
	queue      Queue
	read       func() // called after frames were read, and when the thread has left off
	links      *wait.Poller
	asleep     atomic.Bool
	stopping   atomic.Bool
	done       chan struct{}
	unseen     bool   // the owner's: there is something new since the last ring
	lent       bool   // the owner's: the end has lent the queue to the thread
	held       [2]int // the owner's: large and small buffers that the thread has
	reader     atomic.Uint32
	frames     fifo[[]byte]    // to be written
	large      fifo[*buffer]   // to be read into
	small      fifo[*buffer]   // for frames that are short
	filled     fifo[readFrame] // what was read
	into       *buffer         // the thread's: into which it reads next
	pause      time.Duration   // the thread's: how long it waits for a host that has no room; 0: it has
	again      time.Time       // the thread's: when it is asked again
	descriptor []int           // the thread's: what its sleep watches

	written, lost, blocked atomic.Uint64
}

// readFrame is a frame that a thread has read.
type readFrame struct {
	b *buffer
	n int
}

// startLane starts the thread of a queue on a processor. The error is the system's.
func startLane(q Queue, read func(), processor int) (*lane, error) {
	links, err := wait.New()
	if err != nil {
		return nil, err
	}
	l := &lane{queue: q, read: read, links: links, done: make(chan struct{}), frames: newFIFO[[]byte](laneFrames),
		large: newFIFO[*buffer](laneLarge), small: newFIFO[*buffer](laneSmall), filled: newFIFO[readFrame](2 * laneSmall)}
	go l.run(processor)
	return l, nil
}

// empty reports whether everything was written.
func (l *lane) empty() bool { return l.frames.len() == 0 }

// add adds a copy of a frame to those to be written. It returns false if there is no room.
func (l *lane) add(pieces [][]byte) bool {
	at := l.frames.room()
	if at == nil {
		return false
	}
	*at = (*at)[:0]
	for _, p := range pieces {
		*at = append(*at, p...)
	}
	l.frames.added()
	l.unseen = true
	return true
}

// ring wakes the thread if it sleeps and has something new to do.
func (l *lane) ring() {
	if l.unseen && l.asleep.Load() {
		l.links.Wake()
	}
	l.unseen = false
}

// lend has the thread read.
func (l *lane) lend() {
	if !l.reader.CompareAndSwap(recalled, threadReads) {
		l.reader.Store(threadReads)
	}
	l.unseen = true
}

// recall has the thread leave off.
func (l *lane) recall() {
	if l.reader.CompareAndSwap(threadReads, recalled) {
		l.unseen = true
		l.ring()
	}
}

// left reports whether the thread has left off, and the owner has taken all that it had read.
func (l *lane) left() bool {
	r := l.reader.Load()
	return (r == ownerReads || r == broken) && l.filled.len() == 0
}

// end ends the thread, and waits for that. What it has not written, and what nobody has taken, is lost.
func (l *lane) end() {
	l.stopping.Store(true)
	l.links.Wake()
	<-l.done
	_ = l.links.Close() // its descriptors are nobody else's
}

func (l *lane) run(processor int) {
	defer close(l.done)
	runtime.LockOSThread()                // and the thread ends with this
	_ = processors.Bind([]int{processor}) // where the system does not let it, it runs anywhere
	for !l.stopping.Load() {
		wrote := l.pass()
		if !l.take() && !wrote {
			l.sleep()
		}
	}
}

// pass writes frames. It reports whether it has.
func (l *lane) pass() (wrote bool) {
	if l.pause > 0 && time.Now().Before(l.again) {
		return false
	}
	for range laneBurst {
		frame := l.frames.first()
		if frame == nil {
			return wrote
		}
		switch l.queue.Write(*frame) {
		case Taken:
			l.written.Add(1)
		case Lost:
			l.lost.Add(1)
		case Full:
			l.blocked.Add(1)
			l.pause = min(max(2*l.pause, firstRetry), lastRetry)
			l.again = time.Now().Add(l.pause)
			return wrote
		}
		l.pause, wrote = 0, true
		l.frames.removed()
	}
	return wrote
}

// take reads frames, if the thread is the reader. It reports whether there is more to do.
func (l *lane) take() bool {
	switch l.reader.Load() {
	case ownerReads, broken:
		return false
	case recalled:
		if l.reader.CompareAndSwap(recalled, ownerReads) {
			l.read()
		}
		return true
	}
	n := 0
	for n < laneBurst && l.memory() {
		got := l.queue.Read(l.into.b)
		if got < 0 { // the owner finds out what is wrong
			l.reader.Store(broken)
			l.read()
			return true
		}
		if got == 0 {
			break
		}
		n++
		l.has(got)
	}
	if n > 0 {
		l.read()
	}
	return n > 0
}

// memory reports whether there is a buffer to read into.
func (l *lane) memory() bool {
	if l.into == nil {
		l.into = l.large.pop()
	}
	return l.into != nil
}

// has passes on the frame that was read; a short one is copied, so that the large buffer stays.
func (l *lane) has(n int) {
	b := l.into
	if n < smallSize {
		if small := l.small.pop(); small != nil {
			copy(small.b, b.b[:n])
			l.filled.push(readFrame{small, n}) // which has room for all buffers
			return
		}
	}
	l.into = nil
	l.filled.push(readFrame{b, n})
}

// sleep sleeps until there is something to do.
func (l *lane) sleep() {
	want := l.descriptor[:0]
	if l.reader.Load() == threadReads && l.memory() {
		want = append(want, l.queue.Descriptor())
	}
	if len(want) != len(l.descriptor) {
		l.links.Watch(want, nil)
	}
	l.descriptor = want
	l.asleep.Store(true)
	defer l.asleep.Store(false)
	if r := l.reader.Load(); l.stopping.Load() || r == recalled ||
		r == threadReads && len(want) == 0 && (l.into != nil || l.large.len() > 0) {
		return
	}
	limit := time.Duration(-1)
	if l.pause > 0 {
		limit = max(time.Until(l.again), 0)
	} else if l.frames.len() > 0 {
		return
	}
	l.links.Sleep(limit)
}

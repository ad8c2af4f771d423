package hostside

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/internal/os/processors"
)

// Apart is an end whose queues may be written to by threads of their own.
type Apart interface {
	// Writer returns what writes whole frames to a queue, with their virtio headers, for as long as the end has the queue. It may
	// be called by any thread, but by one at a time, and not beside Write for the same queue.
	Writer(queue int) func(frame []byte) Outcome
}

const (
	// laneFrames is how many frames wait for a queue's thread; what does not fit waits in the function's ring.
	laneFrames = 32
	// busyFrames in busyTime make a queue a busy one.
	busyFrames = 8
	busyTime   = 2 * time.Millisecond
	// fewProcessors leave none for threads beside the loop's and those of programs.
	fewProcessors = 2
)

// lanes say whether queues are written to by threads of their own. While frames arrive for one queue alone, whoever drives the
// function writes them: handing a frame over costs a copy, and the wake-up of a thread. Once two are busy, each queue has its
// thread, on its processor, until fewer are; a queue goes back when its thread has written all it was given, so that its frames
// stay in order. That takes processors: where there are two in all, for programs too, threads make the work dearer than they make
// it faster (test/ethernet/bench.sh has both), so that there they are only for the profiles that keep queues where they are.
type lanes struct {
	apart  bool    // there may be threads
	of     []*lane // by queue; nil until two queues have been busy
	counts [mostLanes]uint16
	many   bool // two queues are busy
	from   clock.Time
}

// mostLanes is how many queues an end has at most.
const mostLanes = 64

// note notes frames of a queue, and decides anew whether there are several busy ones.
func (l *lanes) note(now clock.Time, queue, frames int) {
	if now >= l.from.Add(busyTime) {
		busy := 0
		for i, n := range l.counts {
			if n >= busyFrames {
				busy++
			}
			l.counts[i] = 0
		}
		l.many, l.from = busy > 1 && now < l.from.Add(2*busyTime), now
	}
	l.counts[queue] = uint16(min(int(l.counts[queue])+frames, busyFrames))
}

// lane returns the thread that is to write frames of a queue, nil if the caller is.
func (s *Side) lane(now clock.Time, queue, frames int) *lane {
	l := &s.lanes
	if !l.apart {
		return nil
	}
	l.note(now, queue, frames)
	if l.of == nil {
		if !l.many {
			return nil
		}
		end := s.end.(Apart)
		for q, p := range s.f.Processors()[:min(s.end.Queues(), s.f.ReceiveQueues())] {
			l.of = append(l.of, startLane(end.Writer(q), p.Of()))
		}
	}
	if queue >= len(l.of) || !l.many && l.of[queue].empty() {
		return nil
	}
	return l.of[queue]
}

// endLanes ends all threads. What they have not written is lost.
func (s *Side) endLanes() {
	for _, l := range s.lanes.of {
		l.end()
	}
	s.Counters()
	s.lanes = lanes{}
}

// startLanes decides whether the queues of a function that is attached may have threads.
func (s *Side) startLanes() {
	c := s.f.Config()
	_, apart := s.end.(Apart)
	s.lanes.apart = apart && s.end.Queues() > 1 && (rss.Profile(c.RSSProfile).Static() || len(c.Machine) > fewProcessors)
}

// lane is a thread that writes frames to a queue of the host's. One thread puts them in.
type lane struct {
	write      func([]byte) Outcome
	frames     [laneFrames][]byte
	put, taken atomic.Uint32
	asleep     atomic.Bool
	stopping   atomic.Bool
	wake, done chan struct{}
	unseen     bool // frames were put in since the last ring

	written, lost, blocked atomic.Uint64
}

// startLane starts a thread on a processor.
func startLane(write func([]byte) Outcome, processor int) *lane {
	l := &lane{write: write, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go l.run(processor)
	return l
}

// empty reports whether everything was written.
func (l *lane) empty() bool { return l.put.Load() == l.taken.Load() }

// add adds a copy of a frame. It returns false if there is no room.
func (l *lane) add(pieces [][]byte) bool {
	at := l.put.Load()
	if at-l.taken.Load() == laneFrames {
		return false
	}
	b := l.frames[at%laneFrames][:0]
	for _, p := range pieces {
		b = append(b, p...)
	}
	l.frames[at%laneFrames] = b
	l.put.Store(at + 1)
	l.unseen = true
	return true
}

// ring wakes the thread if it sleeps and has frames.
func (l *lane) ring() {
	if l.unseen && l.asleep.Load() {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	l.unseen = false
}

// end ends the thread, and waits for that.
func (l *lane) end() {
	l.stopping.Store(true)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	<-l.done
}

func (l *lane) run(processor int) {
	defer close(l.done)
	runtime.LockOSThread()                // and the thread ends with this
	_ = processors.Bind([]int{processor}) // where the system does not let it, it runs anywhere
	for !l.stopping.Load() {
		at := l.taken.Load()
		if at != l.put.Load() {
			l.pass(l.frames[at%laneFrames])
			l.taken.Store(at + 1)
			continue
		}
		l.asleep.Store(true)
		if at == l.put.Load() && !l.stopping.Load() {
			<-l.wake
		}
		l.asleep.Store(false)
	}
}

// pass writes a frame; while the host has no room it waits.
func (l *lane) pass(frame []byte) {
	for pause := firstRetry; !l.stopping.Load(); pause = min(2*pause, lastRetry) {
		switch l.write(frame) {
		case Taken:
			l.written.Add(1)
			return
		case Lost:
			l.lost.Add(1)
			return
		}
		l.blocked.Add(1)
		time.Sleep(pause)
	}
}

// hand hands packets of a queue to its thread, and returns how many it took.
func (s *Side) hand(now clock.Time, l *lane, q int, list []ethernet.Packet) int {
	defer l.ring()
	for i := range list {
		if !l.add(s.frame(&list[i])) {
			s.full |= 1 << q
			s.retry = clock.Min(s.retry, now.Add(firstRetry))
			return i
		}
	}
	return len(list)
}

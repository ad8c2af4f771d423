package hostside

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/function/ethernet"
	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
)

// Apart is an end whose queues may have threads of their own.
type Apart interface {
	// Queue returns a queue for its thread.
	Queue(queue int) Queue
	// Lend says whether a queue's thread reads it. While it does, End.Ready does not have the queue, and nothing else signals it.
	Lend(queue int, on bool)
}

const (
	// busyFrames in busyTime make a queue a busy one.
	busyFrames = 8
	busyTime   = 2 * time.Millisecond
	// fewProcessors leave none for threads beside the loop's and those of programs.
	fewProcessors = 2
)

// lanes say whether queues have threads of their own. While frames come and go by one queue alone, whoever drives the function
// reads and writes them: handing a frame over costs a copy, and the wake-up of a thread. Once two are busy, each queue has its
// thread, on its processor, until fewer are; a queue goes back when its thread has written all it was given, and all that it has
// read was taken, so that its frames stay in order. That takes processors: where there are two in all, for programs too, threads
// make the work dearer than they make it faster (test/ethernet/bench.sh has both), so that there they are only for the profiles
// that keep queues where they are. At most MaximumWorkingThreads queues have threads (WinOF 5.50, 4.6.8).
type lanes struct {
	apart  Apart   // nil: there are no threads
	of     []*lane // by queue; nil until two queues have been busy
	counts [mostLanes]uint16
	many   bool // two queues are busy
	from   clock.Time
	short  bool // a thread misses a buffer to read into
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

// startLanes decides whether the queues of a function that is attached may have threads.
func (s *Side) startLanes() {
	c := s.f.Config()
	if apart, ok := s.end.(Apart); ok && s.end.Queues() > 1 &&
		(rss.Profile(c.RSSProfile).Static() || len(c.Machine) > fewProcessors) {
		s.lanes.apart = apart
	}
}

// endLanes ends all threads. What they have not written is lost.
func (s *Side) endLanes() {
	for q, l := range s.lanes.of {
		l.end()
		s.lendTo(l, q, false)
	}
	s.Counters()
	s.lanes = lanes{}
}

// threads makes the threads, when they are first needed, as many as may work: the other queues are the caller's. Without them, because
// the system has no more descriptors, all is.
func (s *Side) threads() []*lane {
	l := &s.lanes
	if l.of != nil || !l.many || l.apart == nil {
		return l.of
	}
	for q, p := range s.f.Processors()[:min(s.end.Queues(), s.f.ReceiveQueues(), s.f.Config().MaximumWorkingThreads)] {
		t, err := startLane(l.apart.Queue(q), s.read, p.Of())
		if err != nil {
			s.endLanes()
			return nil
		}
		l.of = append(l.of, t)
	}
	return l.of
}

// lane returns the thread that is to write frames of a queue, nil if the caller is.
func (s *Side) lane(now clock.Time, queue, frames int) *lane {
	l := &s.lanes
	if l.apart == nil {
		return nil
	}
	l.note(now, queue, frames)
	if of := s.threads(); queue >= len(of) || !l.many && of[queue].empty() {
		return nil
	}
	return l.of[queue]
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

// pullThreads takes what threads have read, and decides who reads from now on. It returns how many frames there were.
func (s *Side) pullThreads(now clock.Time) (n int) {
	s.lanes.short = false
	of := s.threads()
	reads := s.lanes.many && s.large.made >= 2*len(of) // so that each has a buffer, and as many stay
	for q, l := range of {
		if l.lent {
			n += s.pullThread(now, l, q)
		}
		switch {
		case reads && (!l.lent && l.reader.Load() == ownerReads || l.reader.Load() == recalled):
			s.lendTo(l, q, true)
			l.lend()
		case !reads && l.lent:
			l.recall()
		}
		if l.lent && l.left() {
			s.lendTo(l, q, false)
		}
		if l.lent {
			s.supply(l)
		}
		l.ring()
	}
	return n
}

func (s *Side) lendTo(l *lane, q int, on bool) {
	if l.lent != on {
		l.lent = on
		s.lanes.apart.Lend(q, on)
	}
}

// pullThread takes what a thread has read.
func (s *Side) pullThread(now clock.Time, l *lane, q int) (n int) {
	for n < pullMost && s.large.room > 0 {
		r := l.filled.pop()
		if r.b == nil {
			break
		}
		n++
		l.held[s.kind(r.b)]--
		own := s.scratch
		s.scratch = r.b
		s.take(now, r.b.b[:r.n])
		if s.scratch != nil { // it was copied, or refused
			s.scratch.put()
		}
		s.scratch = own
	}
	if n > 0 {
		s.counters.Read += uint64(n)
		s.counters.Threaded += uint64(n)
		s.lanes.note(now, q, n)
	}
	if l.filled.len() > 0 {
		s.lanes.short = true
	}
	return n
}

// kind says which of a thread's buffers one is.
func (s *Side) kind(b *buffer) int {
	if b.pool == &s.small {
		return 1
	}
	return 0
}

// supply gives a thread buffers to read into: of all that there are at most half are with threads.
func (s *Side) supply(l *lane) {
	of := 2 * len(s.lanes.of)
	for l.held[0] < min(laneLarge, s.large.made/of) {
		b := s.large.get()
		if b == nil {
			s.lanes.short = true
			break
		}
		l.held[0]++
		l.large.push(b)
		l.unseen = true
	}
	for l.held[1] < min(laneSmall, s.small.made/of) {
		b := s.small.get()
		if b == nil {
			break
		}
		l.held[1]++
		l.small.push(b)
	}
}

package ethernet

import "math/bits"

// entry is a frame in a queue. A frame may be in the queues of several ports.
type entry struct {
	frame  Ref
	next   uint32 // the one behind it, or the next that is free
	marked bool   // it has met congestion; with ECN.Leaving: it may be marked
}

// queue is what waits at a port with one priority, and what has left. A line of memory: what most frames need to leave.
type queue struct {
	first, last   uint32 // 0: nothing waits
	frames, bytes int32
	peak          int32 // bytes that waited at most
	leaving       bool  // ECN.Leaving
	most          threshold
	kmin, kmax    int32
	slope         uint64 // of the probability of a mark: 2^64 of it for a byte above kmin
	left          traffic
}

// set makes the queue what it is configured to be, whatever waits there.
func (q *queue) set(c *Queue) {
	q.most = thresholdOf(c.Most, c.Alpha)
	q.kmin, q.kmax, q.slope, q.leaving = int32(c.ECN.Kmin), int32(c.ECN.Kmax), slopeOf(c.ECN), c.ECN.Leaving
}

// push puts a frame into a port's queue.
func (p *Port) push(priority uint8, f Ref, n int, marked bool) {
	s, q := p.sw, &p.classes[priority].queue
	e := s.free
	if e != 0 {
		s.free = s.entries[e].next
	} else {
		e = uint32(len(s.entries))
		s.entries = append(s.entries, entry{})
	}
	s.entries[e] = entry{frame: f, marked: marked}
	if q.frames == 0 {
		q.first = e
		p.backlog |= 1 << priority
	} else {
		s.entries[q.last].next = e
	}
	q.last = e
	p.seen |= 1 << priority
	q.frames++
	q.bytes += int32(n)
	q.peak = max(q.peak, q.bytes)
}

// pop takes the first frame out of a port's queue, in which one waits.
func (p *Port) pop(priority uint8) (f Ref, n int, marked bool) {
	s, q := p.sw, &p.classes[priority].queue
	at := q.first
	e := &s.entries[at]
	f, marked = e.frame, e.marked
	q.first, e.next, s.free = e.next, s.free, at
	n = int(s.store.frames[f].size)
	q.frames--
	q.bytes -= int32(n)
	if q.frames == 0 {
		p.backlog &^= 1 << priority
		p.scheduler.empty(priority)
	}
	return f, n, marked
}

// marks reports whether packets get marks in the queue at all.
func (q *queue) marks() bool { return q.leaving || q.kmax != 0 }

// coming reports whether a packet that comes gets a mark, or may get one when it leaves.
func (q *queue) coming(random func() uint64) bool { return q.leaving || q.congested(random) }

// congested reports whether a packet that finds the queue as it is gets a mark.
func (q *queue) congested(random func() uint64) bool {
	switch {
	case q.kmax == 0 || q.bytes <= q.kmin:
		return false
	case q.bytes > q.kmax:
		return true
	}
	return random != nil && random() < q.slope*uint64(q.bytes-q.kmin)
}

// slopeOf returns the slope of the probability of a mark, which is less than 2^64 / (Kmax - Kmin).
func slopeOf(e ECN) uint64 {
	if e.Kmax <= e.Kmin {
		return 0
	}
	const half = 1 << 63
	return min(uint64(e.Pmax*half), half-1) / uint64(e.Kmax-e.Kmin) * 2
}

// scheduler chooses the queue that sends next: strict ones first, the others by weights of bytes.
type scheduler struct {
	strict  uint8
	current uint8
	credit  [Priorities]int // what each may still send; less than 0: it sent too much
	quantum [Priorities]int // what each may send before the next has its turn
}

// quantum is that of a queue of weight 1. What a queue sends too much is made up for, so shares hold over time.
const quantum = 1024

// choose returns the queue that sends next, of those in open, of which there is one.
func (s *scheduler) choose(open uint8) uint8 {
	if strict := open & s.strict; strict != 0 {
		return uint8(bits.Len8(strict) - 1)
	}
	if open&(open-1) == 0 { // it takes nothing from others
		one := uint8(bits.TrailingZeros8(open))
		s.credit[one] = max(s.credit[one], 0)
		return one
	}
	for open>>s.current&1 == 0 || s.credit[s.current] <= 0 {
		s.current = (s.current + 1) % Priorities
		if open>>s.current&1 != 0 {
			s.credit[s.current] += s.quantum[s.current]
		}
	}
	return s.current
}

// sent records what a queue has sent.
func (s *scheduler) sent(priority uint8, n int) { s.credit[priority] -= n }

// empty records that nothing waits in a queue any more: it saves nothing up.
func (s *scheduler) empty(priority uint8) { s.credit[priority] = min(s.credit[priority], 0) }

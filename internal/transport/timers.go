package transport

import "github.com/softvpi/softvpi/internal/clock"

// What a QP waits for; each kind has a deadline of its own.
const (
	retryTimer = iota // an acknowledgement, or the end of an RNR wait
	paceTimer         // the time from which on it may send, if the rate to its destination is limited
	timerKinds
)

// timers is a heap of QPs by one kind of deadline. A QP is in it at most once, and only while it waits for something.
// Moving a deadline later, as every acknowledgement does, is a plain store into the QP: its place in the
// heap is corrected when it reaches the top.
type timers struct {
	heap []timer
	kind uint8
}

type timer struct {
	at clock.Time
	q  *QP
}

// of returns q's deadline.
func (t *timers) of(q *QP) *clock.Time { return &q.deadlines[t.kind] }

// at returns where q is in the heap, -1: not in it.
func (t *timers) at(q *QP) *int32 { return &q.timers[t.kind] }

// arm sets the deadline of q; clock.Never stops the timer.
func (t *timers) arm(q *QP, at clock.Time) {
	*t.of(q) = at
	i := t.at(q)
	if at == clock.Never {
		return
	}
	q.eng.bell.Ring()
	switch {
	case *i < 0:
		*i = int32(len(t.heap))
		t.heap = append(t.heap, timer{at, q})
		t.up(len(t.heap) - 1)
	case at < t.heap[*i].at:
		t.heap[*i].at = at
		t.up(int(*i))
	}
}

// next returns the earliest deadline.
func (t *timers) next() clock.Time {
	for len(t.heap) > 0 {
		top := &t.heap[0]
		if *t.of(top.q) == top.at {
			return top.at
		}
		t.settle()
	}
	return clock.Never
}

// due reports whether a deadline may have passed, which expired knows.
func (t *timers) due(now clock.Time) bool { return len(t.heap) > 0 && t.heap[0].at <= now }

// expired removes and returns a QP whose deadline has passed, or nil.
func (t *timers) expired(now clock.Time) *QP {
	for t.due(now) {
		q := t.heap[0].q
		if *t.of(q) > now {
			t.settle()
			continue
		}
		t.remove(q)
		*t.of(q) = clock.Never
		return q
	}
	return nil
}

// settle moves the top to where its QP's deadline belongs.
func (t *timers) settle() {
	q := t.heap[0].q
	if *t.of(q) == clock.Never {
		t.remove(q)
		return
	}
	t.heap[0].at = *t.of(q)
	t.down(0)
}

// drop ends q's deadline.
func (t *timers) drop(q *QP) {
	t.remove(q)
	*t.of(q) = clock.Never
}

func (t *timers) remove(q *QP) {
	i := int(*t.at(q))
	if i < 0 {
		return
	}
	*t.at(q) = -1
	last := len(t.heap) - 1
	moved := t.heap[last]
	t.heap[last] = timer{}
	t.heap = t.heap[:last]
	if i == last {
		return
	}
	t.heap[i] = moved
	*t.at(moved.q) = int32(i)
	t.down(i)
	t.up(int(*t.at(moved.q)))
}

func (t *timers) up(i int) {
	for i > 0 {
		p := (i - 1) / 4
		if t.heap[p].at <= t.heap[i].at {
			break
		}
		t.swap(i, p)
		i = p
	}
	*t.at(t.heap[i].q) = int32(i)
}

func (t *timers) down(i int) {
	for {
		least := i
		for c := 4*i + 1; c <= 4*i+4 && c < len(t.heap); c++ {
			if t.heap[c].at < t.heap[least].at {
				least = c
			}
		}
		if least == i {
			break
		}
		t.swap(i, least)
		i = least
	}
	*t.at(t.heap[i].q) = int32(i)
}

func (t *timers) swap(i, j int) {
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
	*t.at(t.heap[i].q), *t.at(t.heap[j].q) = int32(i), int32(j)
}

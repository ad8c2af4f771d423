package transport

import "github.com/softvpi/softvpi/internal/clock"

// timers is a heap of QPs by time. A QP is in it at most once, and only while it waits for something.
// Moving a deadline later, as every acknowledgement does, is a plain store into the QP: its place in the
// heap is corrected when it reaches the top.
type timers struct {
	heap []timer
}

type timer struct {
	at clock.Time
	q  *QP
}

// arm sets the deadline of q; clock.Never stops the timer.
func (t *timers) arm(q *QP, at clock.Time) {
	q.deadline = at
	switch {
	case at == clock.Never:
		return
	case q.heapIndex < 0:
		q.heapIndex = int32(len(t.heap))
		t.heap = append(t.heap, timer{at, q})
		t.up(len(t.heap) - 1)
	case at < t.heap[q.heapIndex].at:
		t.heap[q.heapIndex].at = at
		t.up(int(q.heapIndex))
	}
}

// next returns the earliest deadline.
func (t *timers) next() clock.Time {
	for len(t.heap) > 0 {
		top := &t.heap[0]
		if top.q.deadline == top.at {
			return top.at
		}
		t.settle()
	}
	return clock.Never
}

// expired removes and returns a QP whose deadline has passed, or nil.
func (t *timers) expired(now clock.Time) *QP {
	for len(t.heap) > 0 && t.heap[0].at <= now {
		q := t.heap[0].q
		if q.deadline > now {
			t.settle()
			continue
		}
		t.remove(q)
		q.deadline = clock.Never
		return q
	}
	return nil
}

// settle moves the top to where its QP's deadline belongs.
func (t *timers) settle() {
	q := t.heap[0].q
	if q.deadline == clock.Never {
		t.remove(q)
		return
	}
	t.heap[0].at = q.deadline
	t.down(0)
}

func (t *timers) remove(q *QP) {
	i := int(q.heapIndex)
	if i < 0 {
		return
	}
	q.heapIndex = -1
	last := len(t.heap) - 1
	moved := t.heap[last]
	t.heap[last] = timer{}
	t.heap = t.heap[:last]
	if i == last {
		return
	}
	t.heap[i] = moved
	moved.q.heapIndex = int32(i)
	t.down(i)
	t.up(int(moved.q.heapIndex))
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
	t.heap[i].q.heapIndex = int32(i)
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
	t.heap[i].q.heapIndex = int32(i)
}

func (t *timers) swap(i, j int) {
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
	t.heap[i].q.heapIndex, t.heap[j].q.heapIndex = int32(i), int32(j)
}

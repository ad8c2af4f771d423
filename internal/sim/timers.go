package sim

import "github.com/softvpi/softvpi/internal/clock"

// timers is when each member wants to be called next: a heap of moments, of which a member has at most one.
// A deadline that moves away stays in the heap with its earlier moment until that is first, because most
// deadlines are those of retransmissions, which move with every packet and hardly ever come.
type timers struct {
	heap []timer
	pos  []int32      // by member: place in the heap plus one; 0: none
	want []clock.Time // by member: the deadline
}

type timer struct {
	at     clock.Time // not after what the member wants
	member int32
}

// join makes room for another member.
func (t *timers) join() {
	t.pos, t.want = append(t.pos, 0), append(t.want, clock.Never)
}

// set notes the deadline of a member.
func (t *timers) set(member int, at clock.Time) {
	if t.want[member] == at {
		return
	}
	t.want[member] = at
	p := int(t.pos[member]) - 1
	switch {
	case p >= 0 && at >= t.heap[p].at, at == clock.Never:
		return
	case p >= 0:
		t.heap[p].at = at
	default:
		p = len(t.heap)
		t.heap = append(t.heap, timer{at, int32(member)})
	}
	t.up(p)
}

// deadline returns the first deadline.
func (t *timers) deadline() clock.Time {
	for len(t.heap) > 0 {
		x := &t.heap[0]
		want := t.want[x.member]
		if x.at == want {
			return want
		}
		x.at = want
		if want == clock.Never {
			t.pop()
			continue
		}
		t.down()
	}
	return clock.Never
}

// first returns the member whose deadline is the first, and the deadline, or Never.
func (t *timers) first() (member int, at clock.Time) {
	if at = t.deadline(); at != clock.Never {
		member = int(t.heap[0].member)
	}
	return member, at
}

// due removes a member whose deadline has come and returns it, or -1.
func (t *timers) due(now clock.Time) int {
	m, at := t.first()
	if at == clock.Never || at > now {
		return -1
	}
	t.want[m] = clock.Never
	t.pop()
	return m
}

// pop removes the first timer.
func (t *timers) pop() {
	last := len(t.heap) - 1
	t.pos[t.heap[0].member] = 0
	t.heap[0] = t.heap[last]
	if t.heap = t.heap[:last]; last > 0 {
		t.down()
	}
}

func (t *timers) put(i int, x timer) {
	t.heap[i] = x
	t.pos[x.member] = int32(i + 1)
}

func (t *timers) up(i int) {
	x := t.heap[i]
	for i > 0 {
		above := (i - 1) / children
		if x.at >= t.heap[above].at {
			break
		}
		t.put(i, t.heap[above])
		i = above
	}
	t.put(i, x)
}

// down restores the order after a change of the first place.
func (t *timers) down() {
	x, i := t.heap[0], 0
	for {
		low := children*i + 1
		if low >= len(t.heap) {
			break
		}
		for c, end := low+1, min(low+children, len(t.heap)); c < end; c++ {
			if t.heap[c].at < t.heap[low].at {
				low = c
			}
		}
		if t.heap[low].at >= x.at {
			break
		}
		t.put(i, t.heap[low])
		i = low
	}
	t.put(i, x)
}

package clock

import "container/heap"

// Agenda has what is due at some time, the first in front. The zero value is empty.
type Agenda[T any] struct{ queue queue[T] }

// Appointment is something that may be on one Agenda. The zero value is on none.
type Appointment[T any] struct {
	Of    T // what is due
	at    Time
	place int // in the queue plus one; 0: on none
}

// At is when it is, or last was, due.
func (x *Appointment[T]) At() Time { return x.at }

// Set puts an appointment on the agenda, or elsewhere on it.
func (a *Agenda[T]) Set(x *Appointment[T], at Time) {
	x.at = at
	if x.place != 0 {
		heap.Fix(&a.queue, x.place-1)
		return
	}
	heap.Push(&a.queue, x)
}

// Drop takes an appointment off, which may be off already.
func (a *Agenda[T]) Drop(x *Appointment[T]) {
	if x.place != 0 {
		heap.Remove(&a.queue, x.place-1)
	}
}

// Due takes the first appointment off, where it is due; nil: none is. Of those that are due at one time any may be the first.
func (a *Agenda[T]) Due(now Time) *Appointment[T] {
	if len(a.queue) == 0 || a.queue[0].at > now {
		return nil
	}
	return heap.Pop(&a.queue).(*Appointment[T])
}

// Deadline is when something is due next; Never where the agenda is empty.
func (a *Agenda[T]) Deadline() Time {
	if len(a.queue) == 0 {
		return Never
	}
	return a.queue[0].at
}

// queue implements heap.Interface.
type queue[T any] []*Appointment[T]

func (q queue[T]) Len() int           { return len(q) }
func (q queue[T]) Less(i, j int) bool { return q[i].at < q[j].at }
func (q queue[T]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}

func (q *queue[T]) Push(v any) {
	x := v.(*Appointment[T])
	*q = append(*q, x)
	x.place = len(*q)
}

func (q *queue[T]) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	x.place = 0
	return x
}

package clock

import "container/heap"

// Agenda holds appointments, the earliest first. The zero value is empty.
type Agenda[T any] struct{ queue queue[T] }

// Appointment is something due that may be on one Agenda. The zero value is on none.
type Appointment[T any] struct {
	Of    T // what is due
	at    Time
	place int // index in the queue plus one; 0: on none
}

// At returns when it is, or last was, due.
func (x *Appointment[T]) At() Time { return x.at }

// Set puts an appointment on the agenda, or moves it.
func (a *Agenda[T]) Set(x *Appointment[T], at Time) {
	x.at = at
	if x.place != 0 {
		heap.Fix(&a.queue, x.place-1)
		return
	}
	heap.Push(&a.queue, x)
}

// Drop removes an appointment, if it is on the agenda.
func (a *Agenda[T]) Drop(x *Appointment[T]) {
	if x.place != 0 {
		heap.Remove(&a.queue, x.place-1)
	}
}

// Due removes and returns the first appointment if it is due, else nil. The order of appointments due at
// the same time is not defined.
func (a *Agenda[T]) Due(now Time) *Appointment[T] {
	if len(a.queue) == 0 || a.queue[0].at > now {
		return nil
	}
	return heap.Pop(&a.queue).(*Appointment[T])
}

// Deadline returns when the next appointment is due; Never if the agenda is empty.
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

package transport

import "github.com/softvpi/softvpi/internal/command"

// raise queues an asynchronous event of q. A QP raises few kinds of events and each at most once per
// change of state, so the queue is bounded by the number of QPs.
func (q *QP) raise(t command.EventType) {
	q.eng.bell.Ring()
	*q.eng.events.push() = Event{Type: t, QP: q, QPN: q.num, Context: q.context}
}

// dropQueued removes the completions and events of q from the queues, because a QP that was reset or
// destroyed must not produce any more.
func (e *Engine) dropQueued(q *QP) {
	e.completions.filter(func(c *Completion) bool { return c.QPN != q.num })
	e.events.filter(func(v *Event) bool { return v.QP != q })
}

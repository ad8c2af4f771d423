package transport

import "github.com/softvpi/softvpi/internal/command"

// raise queues an asynchronous event of q. Each QP raises few kinds of event and
// each at most once per change of state, so that the queue is bounded by the
// number of QPs.
func (q *QP) raise(t command.EventType) {
	*q.eng.events.push() = Event{Type: t, QP: q, QPN: q.num, Context: q.context}
}

// dropQueued takes the completions and events of q out of the queues: nothing
// comes out of a QP that was reset or destroyed.
func (e *Engine) dropQueued(q *QP) {
	e.completions.filter(func(c *Completion) bool { return c.QPN != q.num })
	e.events.filter(func(v *Event) bool { return v.QP != q })
}

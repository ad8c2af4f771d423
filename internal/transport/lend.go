package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
)

// Lend gives the work of a queue pair on the local path, and that of its peer, into
// the hands of their programs (package direct): until Reclaim the engine takes
// nothing from their queues and flushes nothing. PSNs stand still on both sides.
// ErrNotIdle where something is under way or waits, else ErrNotPeers. The driver
// has delivered the completions of both before.
func (e *Engine) Lend(a *QP) error {
	b := a.peer
	if a.eng != e || b == nil || a.typ != command.RC || a.state != command.RTS || b.state != command.RTS || a.lent || b.lent {
		return ErrNotPeers
	}
	for _, q := range [2]*QP{a, b} {
		if n, err := q.sq.Pending(); n > 0 || err != nil || !q.idle() || q.req.head != nil || q.resp.recv != nil {
			return ErrNotIdle
		}
	}
	a.lent, b.lent = true, true
	return nil
}

// Reclaim takes a queue pair back from its program, in whatever state it is by now.
func (e *Engine) Reclaim(now clock.Time, q *QP) {
	if q.eng != e || !q.lent {
		return
	}
	e.now = now
	q.lent = false
	switch q.state {
	case command.Err, command.SQE:
		q.startFlush()
	case command.RTS:
		q.workPosted()
	}
}

// Lent reports whether the work of q is in the hands of its program.
func (q *QP) Lent() bool { return q.lent }

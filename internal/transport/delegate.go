package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
)

// maxHeld is the longest message for whose end a pair that is about to change its path may be kept from
// beginning others.
const maxHeld = 4 << 20

// Delegate delegates the work of a queue pair on the local path, and of its peer, to their programs (package
// direct): until Reclaim the engine takes nothing from their queues and flushes nothing, and the PSNs on
// both sides stand still. One of the two may still be in RTR: it only receives, and has received, so that
// nobody waits for the event of its first message. The error is ErrNotIdle if a message is in progress;
// then no other begins until Unhold, so that Delegate succeeds soon. Otherwise it is ErrNotPeers. The driver
// must first have delivered the completions of both.
func (e *Engine) Delegate(a *QP) error {
	b := a.peer
	if a.eng != e || b == nil || a.typ != command.RC || !a.receives() || !b.receives() || a.state == command.RTR &&
		b.state == command.RTR ||
		a.delegated || b.delegated || a.parting {
		return ErrNotPeers
	}
	if !a.heard() || !b.heard() {
		return ErrNotIdle
	}
	busy, long := false, false
	for _, q := range [2]*QP{a, b} {
		if !q.idle() || q.req.head != nil || q.resp.recv != nil {
			busy = true
			long = long || q.req.head != nil && q.req.head.length > maxHeld
		}
	}
	a.held, b.held = busy && !long, busy && !long
	if busy {
		return ErrNotIdle
	}
	a.delegated, b.delegated = true, true
	return nil
}

// heard reports whether q no longer waits for a first message to move it out of RTR.
func (q *QP) heard() bool { return q.state == command.RTS || q.resp.established }

// Hold keeps a queue pair on the wire, and its peer, from beginning requests until Unhold, so that Join
// succeeds soon. false: they are not held, because the work in progress may take long.
func (e *Engine) Hold(a, b *QP) bool {
	if a.eng != e || a.peer != nil || b.peer != nil || a.delegated || b.delegated {
		return false
	}
	for _, q := range [2]*QP{a, b} {
		if q.req.rnrWait || q.req.head != nil && q.req.head.length > maxHeld {
			return false
		}
	}
	a.held, b.held = true, true
	return true
}

// Unhold lets a queue pair begin messages again after Delegate or Hold.
func (e *Engine) Unhold(q *QP) {
	if q.eng == e && q.held {
		q.held = false
		q.activate()
	}
}

// Reclaim takes a queue pair back from its program, whatever its state is by now.
func (e *Engine) Reclaim(now clock.Time, q *QP) {
	if q.eng != e || !q.delegated {
		return
	}
	e.now = now
	q.delegated = false
	switch q.state {
	case command.Err, command.SQE:
		q.startFlush()
	case command.RTS:
		q.workPosted()
	}
}

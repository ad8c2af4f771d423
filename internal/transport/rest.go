package transport

import "github.com/softvpi/softvpi/internal/wakeup"

// SetBell gives the engine the bell that it rings when there is something to do after a time in which it rested; nil: it rings none.
func (e *Engine) SetBell(b *wakeup.Bell) { e.bell = b }

// Rests reports whether the engine has nothing to do before its Deadline: Idle, whatever the time is, and nothing handed out. What changes
// that rings the bell: a turn (activate), a timer that is armed, and what is queued for the driver. Packets that are to leave with others
// (answerFirst) and a list of those that were handed out come into being in turns only, in which the engine does not rest.
func (e *Engine) Rests() bool {
	return e.active.waiting|e.mads.waiting|e.notices.waiting|e.raw.waiting == 0 && e.trail.q == nil && len(e.last) == 0 && !e.Lent() &&
		!e.PendingLocal() && !e.Undelivered() && e.copies.queue.len() == 0 && e.mads.in.len() == 0
}

// completed makes room for a completion.
func (e *Engine) completed() *Completion {
	e.bell.Ring()
	return e.completions.push()
}

package ibport

import "github.com/softvpi/softvpi/internal/clock"

// Wait is the wait for an answer from the fabric, until it is due.
type Wait = clock.Appointment[func(now clock.Time)]

// Await begins a wait until due, when over is called, unless End was called before. over is called at most
// once.
func (p *Port) Await(due clock.Time, over func(now clock.Time)) *Wait {
	w := &Wait{Of: over}
	p.waits.Set(w, due)
	return w
}

// End ends a wait, which may already have ended.
func (p *Port) End(w *Wait) { p.waits.Drop(w) }

// expire ends the waits that are due, and reports whether there were any.
func (p *Port) expire(now clock.Time) (any bool) {
	for w := p.waits.Due(now); w != nil; w = p.waits.Due(now) {
		w.Of(now)
		any = true
	}
	return any
}

package ibport

import "github.com/softvpi/softvpi/internal/clock"

// Wait is a question to the fabric whose answer somebody waits for, until it is due.
type Wait = clock.Appointment[func(now clock.Time)]

// Await begins a wait until due; then over is called, unless End was before. It is called at most once.
func (p *Port) Await(due clock.Time, over func(now clock.Time)) *Wait {
	w := &Wait{Of: over}
	p.waits.Set(w, due)
	return w
}

// End ends a wait, which may be over already.
func (p *Port) End(w *Wait) { p.waits.Drop(w) }

// expire ends what has waited for too long, and reports whether there was anything.
func (p *Port) expire(now clock.Time) (any bool) {
	for w := p.waits.Due(now); w != nil; w = p.waits.Due(now) {
		w.Of(now)
		any = true
	}
	return any
}

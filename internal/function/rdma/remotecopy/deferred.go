// Package remotecopy handles the copies of an adapter that cannot be made at once: those in memory that only
// its owner can access, such as a program with a copier.
package remotecopy

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/transport"
)

// batch is how many copies are handed over, or reported, at once.
const batch = 64

// Copies are the deferred copies of one adapter. The zero value needs Init.
type Copies struct {
	start   []transport.Copy
	done    []memory.Finished
	sources []source
}

// source is an owner of memory with copies in progress. A slow owner delays only its own copies.
type source struct {
	owner   memory.Deferred
	started int
	waiting []transport.Copy // copies for which the owner had no room, in order
}

// Init allocates memory.
func (d *Copies) Init() {
	d.start = make([]transport.Copy, batch)
	d.done = make([]memory.Finished, batch)
}

// Idle reports whether no owner has copies in progress.
func (d *Copies) Idle() bool { return len(d.sources) == 0 }

// engine is told which copies have finished: a transport.Engine.
type engine interface {
	Copied(now clock.Time, done []memory.Finished)
}

// Move hands the engine's copies over to their owners and reports finished ones to the engine. It reports
// whether there were any.
func (d *Copies) Move(now clock.Time, e *transport.Engine) bool {
	worked := d.proceed(now, e)
	for {
		n := e.Copies(d.start)
		for i := range d.start[:n] {
			d.begin(now, e, &d.start[i])
		}
		clear(d.start[:n])
		if worked = worked || n > 0; n < len(d.start) {
			break
		}
	}
	for i := range d.sources {
		d.sources[i].owner.Flush()
	}
	return worked
}

// proceed reports what has finished, gives owners with room what waits for them, and forgets owners with
// nothing to do. It reports whether anything had finished.
func (d *Copies) proceed(now clock.Time, e engine) bool {
	worked := false
	for i := 0; i < len(d.sources); i++ {
		s := &d.sources[i]
		worked = d.finish(now, e, s) || worked
		s.startWaiting()
		s.owner.Flush()
		if s.started == 0 && len(s.waiting) == 0 {
			last := len(d.sources) - 1
			d.sources[i] = d.sources[last]
			d.sources[last] = source{}
			d.sources = d.sources[:last]
			i--
		}
	}
	return worked
}

func (d *Copies) finish(now clock.Time, e engine, s *source) bool {
	worked := false
	for s.started > 0 {
		n := s.owner.Finish(d.done)
		if n == 0 {
			break
		}
		s.started -= n
		e.Copied(now, d.done[:n])
		worked = true
	}
	return worked
}

func (d *Copies) begin(now clock.Time, e engine, c *transport.Copy) {
	owner, ok := c.Region.Remote.(memory.Deferred)
	if !ok {
		d.done[0] = memory.Finished{Tag: c.Tag, Err: memory.ErrGone}
		e.Copied(now, d.done[:1])
		return
	}
	s := d.of(owner)
	if len(s.waiting) > 0 || !owner.Start(&c.Transfer) {
		s.waiting = append(s.waiting, *c)
		return
	}
	s.started++
}

// startWaiting hands over as many copies as the owner now has room for.
func (s *source) startWaiting() {
	n := 0
	for n < len(s.waiting) && s.owner.Start(&s.waiting[n].Transfer) {
		n++
		s.started++
	}
	if n > 0 {
		rest := copy(s.waiting, s.waiting[n:])
		clear(s.waiting[rest:])
		s.waiting = s.waiting[:rest]
	}
}

// of returns the entry of an owner; few owners have copies in progress at a time.
func (d *Copies) of(owner memory.Deferred) *source {
	for i := range d.sources {
		if d.sources[i].owner == owner {
			return &d.sources[i]
		}
	}
	d.sources = append(d.sources, source{owner: owner})
	return &d.sources[len(d.sources)-1]
}

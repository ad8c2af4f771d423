package device

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/transport"
)

const copyBatch = 64

// deferredBatch is what an adapter needs for memory that only its owner reaches.
type deferredBatch struct {
	start   []transport.Copy
	done    []memory.Finished
	sources []copySource
}

// copySource is an owner of memory with copies under way. An owner that is slow
// holds up its own copies only.
type copySource struct {
	owner   memory.Deferred
	started int
	waiting []transport.Copy // that the owner had no room for, in order
}

func (d *deferredBatch) init() {
	d.start = make([]transport.Copy, copyBatch)
	d.done = make([]memory.Finished, copyBatch)
}

// copies hands copies over to their owners and reports those that ended.
func (a *adapter) copies(now clock.Time) bool {
	d := &a.deferred
	worked := false
	for i := 0; i < len(d.sources); i++ {
		s := &d.sources[i]
		worked = a.finishCopies(now, s) || worked
		s.startWaiting()
		s.owner.Flush()
		if s.started == 0 && len(s.waiting) == 0 {
			last := len(d.sources) - 1
			d.sources[i] = d.sources[last]
			d.sources[last] = copySource{}
			d.sources = d.sources[:last]
			i--
		}
	}
	for {
		n := a.engine.Copies(d.start)
		for i := range d.start[:n] {
			a.startCopy(now, &d.start[i])
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

func (a *adapter) finishCopies(now clock.Time, s *copySource) bool {
	d := &a.deferred
	worked := false
	for s.started > 0 {
		n := s.owner.Finish(d.done)
		if n == 0 {
			break
		}
		s.started -= n
		a.engine.Copied(now, d.done[:n])
		worked = true
	}
	return worked
}

func (a *adapter) startCopy(now clock.Time, c *transport.Copy) {
	owner, ok := c.Region.Remote.(memory.Deferred)
	if !ok {
		a.deferred.done[0] = memory.Finished{Tag: c.Tag, Err: memory.ErrGone}
		a.engine.Copied(now, a.deferred.done[:1])
		return
	}
	s := a.deferred.source(owner)
	if len(s.waiting) > 0 || !owner.Start(&c.Transfer) {
		s.waiting = append(s.waiting, *c)
		return
	}
	s.started++
}

// startWaiting hands over what the owner has room for now.
func (s *copySource) startWaiting() {
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

// source returns the entry of an owner; there are few owners with copies under way.
func (d *deferredBatch) source(owner memory.Deferred) *copySource {
	for i := range d.sources {
		if d.sources[i].owner == owner {
			return &d.sources[i]
		}
	}
	d.sources = append(d.sources, copySource{owner: owner})
	return &d.sources[len(d.sources)-1]
}

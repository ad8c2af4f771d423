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
	from    int // first of start that was not handed over
	to      int
	done    []memory.Finished
	sources []deferredSource // with copies under way
	failed  []memory.Finished
}

type deferredSource struct {
	owner  memory.Deferred
	copies int
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
		for s.copies > 0 {
			n := s.owner.Finish(d.done)
			if n == 0 {
				break
			}
			s.copies -= n
			a.engine.Copied(now, d.done[:n])
			worked = true
		}
		if s.copies <= 0 {
			last := len(d.sources) - 1
			d.sources[i] = d.sources[last]
			d.sources[last] = deferredSource{}
			d.sources = d.sources[:last]
			i--
		}
	}
	for {
		if d.from == d.to {
			d.from, d.to = 0, a.engine.Copies(d.start)
			if d.to == 0 {
				return worked
			}
			worked = true
		}
		if !a.startCopies(now) {
			return worked
		}
	}
}

// startCopies hands the copies that wait over; false: an owner can hold no more.
func (a *adapter) startCopies(now clock.Time) bool {
	d := &a.deferred
	for ; d.from < d.to; d.from++ {
		c := &d.start[d.from]
		owner, ok := c.Region.Remote.(memory.Deferred)
		if !ok {
			d.failed = append(d.failed[:0], memory.Finished{Tag: c.Tag, Err: memory.ErrGone})
			a.engine.Copied(now, d.failed)
			continue
		}
		if !owner.Start(&c.Transfer) {
			return false
		}
		d.count(owner)
	}
	return true
}

func (d *deferredBatch) count(owner memory.Deferred) {
	for i := range d.sources {
		if d.sources[i].owner == owner {
			d.sources[i].copies++
			return
		}
	}
	d.sources = append(d.sources, deferredSource{owner, 1})
}

package lease

import (
	"errors"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/transport"
)

// Book is the leases of a host that need attention.
type Book struct {
	now      func() clock.Time
	recalled []*Lease
	check    clock.Time // when to check those
	waiting  []*Lease   // to be delegated
	due      clock.Time
	watched  []*Lease // with requests delegated to programs
	owners   uint32
	leases   uint32
}

// NewBook returns an empty book; now reads the clock of completions.
func NewBook(now func() clock.Time) Book { return Book{now: now, due: clock.Never} }

// Deadline returns when the loop must next check the pairs.
func (b *Book) Deadline() clock.Time {
	due := b.due
	if len(b.recalled) > 0 {
		due = clock.Min(due, b.check)
	}
	for _, r := range b.watched {
		due = clock.Min(due, r.stall)
	}
	return due
}

// Step handles the pairs at the end of a turn of the loop, when completions have been delivered.
func (b *Book) Step(now clock.Time) (worked bool) {
	if len(b.watched) > 0 {
		b.watch(now)
	}
	if len(b.recalled) > 0 {
		worked = b.settleAll(now)
	}
	if len(b.waiting) == 0 {
		return worked
	}
	n := len(b.waiting)
	if now < b.due {
		n = min(n, lookAlways)
	}
	for i := 0; i < n; i++ {
		r := b.waiting[i]
		if now < r.after || now < r.due && i >= lookAlways {
			continue
		}
		err := r.delegate(now)
		if errors.Is(err, transport.ErrNotIdle) {
			if now >= r.due {
				r.look = min(2*r.look, maxLook)
				r.due = now.Add(r.look)
			}
			continue
		}
		worked = true
		r.queued = false
		last := len(b.waiting) - 1
		b.waiting[i], b.waiting[last] = b.waiting[last], nil
		b.waiting = b.waiting[:last]
		n = min(n-1, last)
		i--
	}
	if now >= b.due || worked {
		b.due = clock.Never
		for _, r := range b.waiting {
			b.due = clock.Min(b.due, r.due)
		}
	}
	return worked
}

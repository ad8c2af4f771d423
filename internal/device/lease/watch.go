package lease

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/internal/transport"
)

const (
	// stallTime is how long requests delegated to a program that makes no progress wait until the engine takes
	// them.
	stallTime = 50 * time.Microsecond
	// tryTime is how long they wait if the program tries but fails, mostly for lack of a receive at its
	// peer, or is in the middle of a copy, which for 1 MB takes longer than stallTime. It takes the place of
	// the first RNR timer.
	tryTime = time.Millisecond
)

// Rung handles a doorbell of one of the queue pairs while the engine does not have them. Posted receives
// concern only the peer. There may be events for the driver to raise. Requests mean that the program gave
// its direction back, or that it cannot make progress for the moment: then it has stallTime.
func (r *Lease) Rung(q *transport.QP) {
	if r.ends[1].QP == q {
		r.rung(1)
		return
	}
	r.rung(0)
}

func (r *Lease) rung(end int) {
	r.raise(end)
	if n, err := r.ends[end].Send.Pending(); n == 0 && err == nil || r.path.State() != path.Delegated {
		return
	}
	now := r.book.now()
	if !r.record.Way[end].Delegated() {
		r.Recall(now)
		return
	}
	if !r.watched {
		r.watched = true
		r.book.watched = append(r.book.watched, r)
	}
	r.notice(now)
}

// notice records how far the programs have come with their send queues.
func (r *Lease) notice(now clock.Time) {
	r.stall, r.stuck = now.Add(stallTime), now
	for i := range r.ends {
		r.seen[i] = r.ends[i].Send.Consumer()
		r.tried[i], _ = r.record.Way[i].Inside()
	}
}

// watch recalls the pairs whose programs make no progress with what they posted; the engine then handles
// it.
func (b *Book) watch(now clock.Time) {
	keep := b.watched[:0]
	for _, r := range b.watched {
		switch {
		case r.path.State() == path.Delegated && now < r.stall:
			keep = append(keep, r)
		case r.path.State() == path.Delegated && r.goesOn(now):
			keep = append(keep, r)
		default:
			r.watched = false
		}
	}
	clear(b.watched[len(keep):])
	b.watched = keep
}

// goesOn reports whether to keep watching: something waits, and is being worked on. A pair without
// progress is recalled.
func (r *Lease) goesOn(now clock.Time) bool {
	waits, moved, still := false, false, false
	for i := range r.ends {
		q := r.ends[i].Send
		n, err := q.Pending()
		if n == 0 && err == nil {
			continue
		}
		waits = true
		at := q.Consumer()
		op, inside := r.record.Way[i].Inside()
		moved = moved || at != r.seen[i]
		still = still || at == r.seen[i] && op == r.tried[i] && !inside || !r.record.Way[i].Delegated()
		r.seen[i], r.tried[i] = at, op
	}
	if moved {
		r.stuck = now
	}
	if waits && (still || now.Sub(r.stuck) > tryTime) {
		r.Recall(now)
		return false
	}
	r.stall = now.Add(stallTime)
	return waits
}

package device

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

const (
	// stallTime is how long requests wait in the hands of a program that does not go
	// on with them before the engine takes them.
	stallTime = 50 * time.Microsecond
	// tryTime is how long they wait in the hands of one that tries, in vain: for a
	// receive of its peer, in the main. It is in place of the first RNR timer.
	tryTime = time.Millisecond
)

// rung takes a doorbell of a QP whose loan is not in the engine. Receives that were
// posted are the peer's business. There may be events for the driver to raise. Requests mean that the program gave its direction
// back, or that it cannot go on for the moment: then it has stallTime.
func (r *loan) rung(q *qp) {
	i := r.role(q)
	r.raise(i)
	if n, err := q.sendRing.Pending(); n == 0 && err == nil || r.state != lent {
		return
	}
	now := r.host.now()
	if !r.record.Way[i].Lent() {
		r.recall(now)
		return
	}
	s := &r.host.loans
	if !r.watched {
		r.watched = true
		s.watched = append(s.watched, r)
	}
	r.notice(now)
}

func (r *loan) role(q *qp) int {
	if r.ends[1] == q {
		return 1
	}
	return 0
}

// notice notes how far the programs have come with what waits in their send queues.
func (r *loan) notice(now clock.Time) {
	r.stall, r.stuck = now.Add(stallTime), now
	for i, q := range r.ends {
		r.seen[i] = q.sendRing.Consumer()
		r.tried[i], _ = r.record.Way[i].Inside()
	}
}

// watch recalls the pairs whose programs do not go on with what they posted: the
// engine does it then.
func (s *loans) watch(now clock.Time) {
	keep := s.watched[:0]
	for _, r := range s.watched {
		switch {
		case r.state == lent && now < r.stall:
			keep = append(keep, r)
		case r.state == lent && r.goesOn(now):
			keep = append(keep, r)
		default:
			r.watched = false
		}
	}
	clear(s.watched[len(keep):])
	s.watched = keep
}

// goesOn reports whether to go on watching: something waits, and is being worked on.
// A pair that stands still is recalled.
func (r *loan) goesOn(now clock.Time) bool {
	waits, moved, still := false, false, false
	for i, q := range r.ends {
		n, err := q.sendRing.Pending()
		if n == 0 && err == nil {
			continue
		}
		waits = true
		at := q.sendRing.Consumer()
		op, _ := r.record.Way[i].Inside()
		moved = moved || at != r.seen[i]
		still = still || at == r.seen[i] && op == r.tried[i] || !r.record.Way[i].Lent()
		r.seen[i], r.tried[i] = at, op
	}
	if moved {
		r.stuck = now
	}
	if waits && (still || now.Sub(r.stuck) > tryTime) {
		r.recall(now)
		return false
	}
	r.stall = now.Add(stallTime)
	return waits
}

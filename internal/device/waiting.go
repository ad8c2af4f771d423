package device

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

const (
	// stallTime is how long requests lent to a program that makes no progress wait until the engine takes
	// them.
	stallTime = 50 * time.Microsecond
	// tryTime is how long they wait if the program tries but fails, mostly for lack of a receive at its
	// peer. It takes the place of the first RNR timer.
	tryTime = time.Millisecond
)

// rung handles a doorbell of a QP whose loan is not in the engine. Posted receives concern only the peer.
// There may be events for the driver to raise. Requests mean that the program gave its direction back, or
// that it cannot make progress for the moment: then it has stallTime.
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

// notice records how far the programs have come with their send queues.
func (r *loan) notice(now clock.Time) {
	r.stall, r.stuck = now.Add(stallTime), now
	for i, q := range r.ends {
		r.seen[i] = q.sendRing.Consumer()
		r.tried[i], _ = r.record.Way[i].Inside()
	}
}

// watch recalls the pairs whose programs make no progress with what they posted; the engine then handles
// it.
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

// goesOn reports whether to keep watching: something waits, and is being worked on. A pair without
// progress is recalled.
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

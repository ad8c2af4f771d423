package device

import (
	"errors"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/internal/transport"
)

const (
	// joinLook is how often a pair that is kept from beginning messages is checked, and joinHold for how
	// long it is kept, at most: long enough for the work in progress to end, and short enough for programs
	// not to notice.
	joinLook = 20 * time.Microsecond
	joinHold = 5 * time.Millisecond
	// joinRest is how long a pair that did not come to rest in that time continues until the next attempt;
	// each attempt doubles it, up to maxJoinRest.
	joinRest    = time.Millisecond
	maxJoinRest = 200 * time.Millisecond
)

// joining is a pair of QPs that waits on the wire for a moment with nothing in progress, to move to the
// local path. A pair that is always busy would not have such a moment; therefore it is kept from beginning
// messages for short times.
type joining struct {
	q, p *qp
	till clock.Time // end of the hold, or of the rest
	rest time.Duration
}

// join moves q and its peer to the local path if both are on this host and nothing needs packets.
func (h *Host) join(q *qp) {
	if q.delegable && q.tq.Local() && !q.tq.Parting() {
		return // it is already there, and both are ready
	}
	p, e := q.decide()
	if p == nil || e == path.Demand {
		return
	}
	err := q.adapter.engine.Join(h.now(), q.tq, p.tq)
	if err == nil {
		h.mark(q, p)
	}
	if errors.Is(err, transport.ErrNotIdle) && (q.joining == nil || q.joining != p.joining) {
		j := &joining{q: q, p: p, rest: joinRest}
		for _, e := range [2]*qp{q, p} {
			if e.joining != nil { // with another peer, before it was reconnected
				e.joining.drop()
			}
			e.joining = j
		}
		q.adapter.joining = append(q.adapter.joining, j)
		q.adapter.joinDue = h.now().Add(joinLook)
		q.adapter.station.Ring()
	}
}

// joinAgain tries again for pairs that were in the middle of a message.
func (a *adapter) joinAgain(now clock.Time) {
	keep, due := a.joining[:0], clock.Never
	for _, j := range a.joining {
		if j.over(now) {
			j.drop()
			continue
		}
		keep = append(keep, j)
		next := j.till
		if j.held() {
			next = clock.Min(next, now.Add(joinLook))
		}
		due = clock.Min(due, next)
	}
	clear(a.joining[len(keep):])
	a.joining, a.joinDue = keep, due
}

// over tries to move the pair to the local path, and reports whether no further attempt is needed.
func (j *joining) over(now clock.Time) bool {
	q, p := j.q, j.p
	if q.joining != j || p.joining != j || q.tq == nil || q.tq.Local() {
		return true
	}
	if peer, e := q.decide(); peer != p || e == path.Demand {
		return true
	}
	held := j.held()
	if !held && now < j.till {
		return false
	}
	err := q.adapter.engine.Join(now, q.tq, p.tq)
	switch {
	case err == nil:
		q.adapter.host.mark(q, p)
		return true
	case !errors.Is(err, transport.ErrNotIdle):
		return true
	case held && now < j.till:
		return false
	case held:
		q.adapter.engine.Unhold(q.tq)
	default:
		q.adapter.engine.Hold(q.tq)
	}
	if j.till = now.Add(joinHold); q.tq.Pair().Take(path.Rest) {
		j.till = now.Add(j.rest)
		j.rest = min(2*j.rest, maxJoinRest)
	}
	return false
}

// held reports whether the pair is kept from beginning messages.
func (j *joining) held() bool {
	return j.q.tq != nil && j.q.tq.Pair() != nil && j.q.tq.Pair().State() == path.Joining
}

// drop gives up the attempts. A pair that has come to the local path stays there.
func (j *joining) drop() {
	for _, q := range [2]*qp{j.q, j.p} {
		if q.joining != j {
			continue
		}
		if q.joining = nil; q.tq != nil && !q.tq.Local() {
			q.adapter.engine.Split(q.tq)
		}
	}
}

package umad

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/mad"
)

// exchange keeps the requests that wait for an answer. It is told the time, sends nothing itself, and knows
// requests by the low 32 bits of their transaction IDs, which are what belongs to a program: the upper ones are the
// transport's.
type exchange struct {
	last    uint32
	waiting map[uint32]*pending
	due     clock.Agenda[*pending]
}

// pending is a MAD that was sent, and who wants the answer.
type pending struct {
	id        uint32
	datagram  Datagram
	timeout   time.Duration
	triesLeft int
	due       clock.Appointment[*pending]
	transfer  *mad.RMPPReceiver      // of an answer that comes in segments
	done      func(*Datagram, error) // called once; nil: it was
	sending   int                    // how many are at sending it
}

// newExchange starts with transaction IDs after first, which should differ from run to run.
func newExchange(first uint32) *exchange {
	return &exchange{last: first, waiting: map[uint32]*pending{}}
}

// add gives r an ID that no other request has, and waits for its answer from now on.
func (x *exchange) add(now clock.Time, r *pending) {
	for {
		x.last++
		if _, taken := x.waiting[x.last]; !taken && x.last != 0 {
			break
		}
	}
	r.id = x.last
	r.triesLeft--
	r.due.Of = r
	x.due.Set(&r.due, now.Add(r.timeout))
	x.waiting[r.id] = r
}

func (x *exchange) remove(r *pending) {
	delete(x.waiting, r.id)
	x.due.Drop(&r.due)
}

// failed is an answer that says that none will come. It returns the request that is to be sent again, or the one that is
// over; both nil: it is not waited for.
func (x *exchange) failed(now clock.Time, id uint32) (again, over *pending) {
	r := x.waiting[id]
	if r == nil {
		return nil, nil
	}
	return x.retry(now, r)
}

func (x *exchange) retry(now clock.Time, r *pending) (again, over *pending) {
	if r.triesLeft == 0 {
		x.remove(r)
		return nil, r
	}
	r.triesLeft--
	r.transfer = nil
	x.extend(now, r)
	return r, nil
}

// extend gives a request whose answer has begun to come its whole time anew.
func (x *exchange) extend(now clock.Time, r *pending) {
	x.due.Set(&r.due, now.Add(r.timeout))
}

// expire finds what was not answered in time: what is to be sent again, and what is over.
func (x *exchange) expire(now clock.Time) (again, over []*pending) {
	for d := x.due.Due(now); d != nil; d = x.due.Due(now) {
		a, o := x.retry(now, d.Of)
		if a != nil {
			again = append(again, a)
		}
		if o != nil {
			over = append(over, o)
		}
	}
	return again, over
}

// deadline is when expire is wanted; [clock.Never]: nothing waits.
func (x *exchange) deadline() clock.Time { return x.due.Deadline() }

// abandon takes all requests out.
func (x *exchange) abandon() (all []*pending) {
	for _, r := range x.waiting {
		all = append(all, r)
	}
	for _, r := range all {
		x.remove(r)
	}
	return all
}

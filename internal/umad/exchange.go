package umad

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/mad"
)

// exchange keeps the requests that wait for an answer. Its caller passes in the time and does the sending.
// It identifies requests by the low 32 bits of their transaction IDs, which belong to the program; the
// upper ones belong to the transport.
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
	transfer  *mad.RMPPReceiver      // of an answer that arrives in segments
	done      func(*Datagram, error) // called once; nil: already called
	sending   int                    // number of goroutines that are sending it
}

// newExchange returns an exchange whose transaction IDs follow first, which should differ from run to run.
func newExchange(first uint32) *exchange {
	return &exchange{last: first, waiting: map[uint32]*pending{}}
}

// add gives r a unique ID, and waits for its answer from now on.
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

// failed handles the news that no answer will come. It returns the request if it is to be retransmitted
// (again) or is over; both nil: it is not being waited for.
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

// extend restarts the timeout of a request whose answer has begun to arrive.
func (x *exchange) extend(now clock.Time, r *pending) {
	x.due.Set(&r.due, now.Add(r.timeout))
}

// expire returns the requests that were not answered in time: those to retransmit, and those that are
// over.
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

// deadline returns when expire must be called; [clock.Never]: nothing waits.
func (x *exchange) deadline() clock.Time { return x.due.Deadline() }

// abandon removes all requests.
func (x *exchange) abandon() (all []*pending) {
	for _, r := range x.waiting {
		all = append(all, r)
	}
	for _, r := range all {
		x.remove(r)
	}
	return all
}

package umad

import (
	"container/heap"
	"time"

	"github.com/softvpi/softvpi/wire/mad"
)

// exchange keeps the requests that wait for an answer. It is told the time, sends nothing itself, and knows
// requests by the low 32 bits of their transaction IDs, which are what belongs to a program: the upper ones are the
// transport's.
type exchange struct {
	last    uint32
	waiting map[uint32]*pending
	due     deadlines
}

// pending is a MAD that was sent, and who wants the answer.
type pending struct {
	id        uint32
	datagram  Datagram
	timeout   time.Duration
	triesLeft int
	deadline  time.Time
	transfer  *mad.RMPPReceiver      // of an answer that comes in segments
	place     int                    // in the queue of deadlines
	done      func(*Datagram, error) // called once; nil: it was
	sending   int                    // how many are at sending it
}

// newExchange starts with transaction IDs after first, which should differ from run to run.
func newExchange(first uint32) *exchange {
	return &exchange{last: first, waiting: map[uint32]*pending{}}
}

// add gives r an ID that no other request has, and waits for its answer from now on.
func (x *exchange) add(now time.Time, r *pending) {
	for {
		x.last++
		if _, taken := x.waiting[x.last]; !taken && x.last != 0 {
			break
		}
	}
	r.id = x.last
	r.triesLeft--
	r.deadline = now.Add(r.timeout)
	x.waiting[r.id] = r
	heap.Push(&x.due, r)
}

// answered takes the request with the ID out; nil: it is not waited for.
func (x *exchange) answered(id uint32) *pending {
	r := x.waiting[id]
	if r != nil {
		x.remove(r)
	}
	return r
}

func (x *exchange) remove(r *pending) {
	delete(x.waiting, r.id)
	heap.Remove(&x.due, r.place)
}

// failed is an answer that says that none will come. It returns the request that is to be sent again, or the one that is
// over; both nil: it is not waited for.
func (x *exchange) failed(now time.Time, id uint32) (again, over *pending) {
	r := x.waiting[id]
	if r == nil {
		return nil, nil
	}
	return x.retry(now, r)
}

func (x *exchange) retry(now time.Time, r *pending) (again, over *pending) {
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
func (x *exchange) extend(now time.Time, r *pending) {
	r.deadline = now.Add(r.timeout)
	heap.Fix(&x.due, r.place)
}

// expire finds what was not answered in time: what is to be sent again, and what is over.
func (x *exchange) expire(now time.Time) (again, over []*pending) {
	for len(x.due) > 0 && !x.due[0].deadline.After(now) {
		a, o := x.retry(now, x.due[0])
		if a != nil {
			again = append(again, a)
		}
		if o != nil {
			over = append(over, o)
		}
	}
	return again, over
}

// next is when expire is wanted; false: nothing waits.
func (x *exchange) next() (time.Time, bool) {
	if len(x.due) == 0 {
		return time.Time{}, false
	}
	return x.due[0].deadline, true
}

// abandon takes all requests out.
func (x *exchange) abandon() []*pending {
	all := x.due
	x.due, x.waiting = nil, map[uint32]*pending{}
	return all
}

// deadlines is a heap of requests, the first of which is due first.
type deadlines []*pending

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline.Before(d[j].deadline) }
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i, j
}
func (d *deadlines) Push(v any) {
	r := v.(*pending)
	r.place = len(*d)
	*d = append(*d, r)
}
func (d *deadlines) Pop() any {
	old := *d
	r := old[len(old)-1]
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	return r
}

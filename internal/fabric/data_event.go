package fabric

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// Kinds of events.
const (
	sent    = iota // a port has sent a packet, which is now on the cable
	arrives        // a packet is at a port
	credit         // a port learns of space at the other end
	old            // a packet may have waited too long at the head of its lane
	sample         // a sampling begins or ends
)

// event is something that happens at a port.
type event struct {
	at     clock.Time
	order  uint64 // of events at the same time: order of creation
	parcel *Parcel
	port   int32
	epoch  uint32
	bytes  int32
	kind   uint8
	vl     uint8
}

// eventQueue is a heap: the next event comes first.
type eventQueue []event

func (q eventQueue) before(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}

func (q *eventQueue) push(e event) {
	*q = append(*q, e)
	h := *q
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.before(i, up) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (q *eventQueue) pop() event {
	h := *q
	first := h[0]
	last := len(h) - 1
	h[0], h[last] = h[last], event{}
	h = h[:last]
	*q = h
	for i := 0; ; {
		low := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < last && h.before(down, low) {
				low = down
			}
		}
		if low == i {
			return first
		}
		h[i], h[low] = h[low], h[i]
		i = low
	}
}

// row is a ring of events that happen as soon as those before them have.
type row struct {
	ring        []event // a power of two long
	first, last uint32
}

func (r *row) empty() bool { return r.first == r.last }

func (r *row) push(e *event) {
	if int(r.last-r.first) == len(r.ring) {
		bigger := make([]event, max(64, 2*len(r.ring)))
		for i := range r.ring {
			bigger[i] = r.ring[(r.first+uint32(i))&uint32(len(r.ring)-1)]
		}
		r.first, r.last, r.ring = 0, uint32(len(r.ring)), bigger
	}
	r.ring[r.last&uint32(len(r.ring)-1)] = *e
	r.last++
}

// pop removes the first event. It remains valid until the next push.
func (r *row) pop() *event {
	e := &r.ring[r.first&uint32(len(r.ring)-1)]
	r.first++
	return e
}

// after schedules an event on a link, after d or, if nothing takes time, soon.
func (f *Fabric) after(d time.Duration, now clock.Time, e event) {
	if f.data.untimed {
		f.data.soon.push(&e)
		return
	}
	e.at = now.Add(d)
	f.later(e)
}

// later schedules an event.
func (f *Fabric) later(e event) {
	f.data.numbers++
	e.order = f.data.numbers
	f.data.events.push(e)
}

// happen executes an event. It ignores those of a link that has gone down meanwhile.
func (f *Fabric) happen(now clock.Time, e event) {
	p := &f.ports[e.port]
	stale := p.lanes == nil || p.lanes.epoch != e.epoch
	switch e.kind {
	case sent:
		if !stale {
			p.lanes.sending = false
			f.transmit(now, p)
		}
	case arrives:
		if stale {
			f.data.give(e.parcel)
			return
		}
		f.arrive(now, p, e.parcel)
	case credit:
		if !stale {
			p.lanes.out[e.vl].used -= int(e.bytes)
			f.transmit(now, p)
		}
	case sample:
		f.sample(now, p.node, e.epoch)
	case old:
		if !stale {
			f.expireHead(now, p, e.vl)
		}
	}
}

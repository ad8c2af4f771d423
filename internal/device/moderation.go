package device

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// Moderation is how an adapter holds the events of completion queues back whose programs have not said so
// themselves with ModerateCQ (WinOF 5.50, 4.6.5: *InterruptModeration and what belongs to it). The zero value holds
// nothing back. Completions that programs give each other on the direct path raise their events without the adapter.
type Moderation struct {
	Receive, Send Pace
	// Adaptive holds the events of receives back only where a queue's completions come fast: from High a second
	// until they come slower than Low.
	Adaptive  bool
	Low, High uint32
}

// Pace is how long an event waits: until Count completions wait for it, or Interval has passed since the first. Without
// an Interval it does not wait; without a Count the time alone bounds it.
type Pace struct {
	Count    uint32
	Interval time.Duration
}

// rateWindow is the shortest time that a rate of completions is measured over.
const rateWindow = time.Millisecond

// meter tells whether a queue's completions come fast.
type meter struct {
	fast  bool
	since clock.Time
	from  uint32 // completions then
}

// look takes the number of completions so far.
func (r *meter) look(now clock.Time, n, low, high uint32) {
	passed := now.Sub(r.since)
	if passed < rateWindow {
		return
	}
	switch rate := uint64(n-r.from) * uint64(time.Second) / uint64(passed); {
	case rate >= uint64(high):
		r.fast = true
	case rate < uint64(low):
		r.fast = false
	}
	r.since, r.from = now, n
}

// pace is how long the event of a completion waits.
func (q *cq) pace(now clock.Time, receive bool) Pace {
	m := &q.adapter.cfg.Moderation
	switch {
	case q.own:
		return q.chosen
	case !receive:
		return m.Send
	case m.Adaptive:
		if q.meter.look(now, q.ring.Produced(), m.Low, m.High); !q.meter.fast {
			return Pace{}
		}
	}
	return m.Receive
}

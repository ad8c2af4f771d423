package device

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// Moderation is how an adapter delays the events of completion queues whose programs have not called
// ModerateCQ themselves (WinOF 5.50, 4.6.5: *InterruptModeration and related keys). The zero value delays
// nothing. Completions on the direct path raise their events without the adapter.
type Moderation struct {
	Receive, Send Pace
	// Adaptive delays the events of receives only while a queue's completions come fast: from High per
	// second until they drop below Low.
	Adaptive  bool
	Low, High uint32
}

// Pace is how long an event is delayed: until Count completions have accumulated, or Interval has passed
// since the first. Without an Interval there is no delay; without a Count only the time counts.
type Pace struct {
	Count    uint32
	Interval time.Duration
}

// rateWindow is the minimum time over which a rate of completions is measured.
const rateWindow = time.Millisecond

// meter tells whether a queue's completions come fast.
type meter struct {
	fast  bool
	since clock.Time
	from  uint32 // number of completions then
}

// look updates the meter with the number of completions so far.
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

// pace returns how long the event of a completion is delayed.
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

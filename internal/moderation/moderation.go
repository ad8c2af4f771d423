// Package moderation says how long the events of completions are delayed (WinOF 5.50, 4.6.5: *InterruptModeration and related
// keys): those of completion queues, and the interrupts of an Ethernet function's queues. It is pure.
package moderation

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// Setting is how an adapter delays events. The zero value delays nothing.
type Setting struct {
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

// Profile returns a pace scaled by a profile: 0 (low latency) has no delay, 1 (moderate) the pace itself, 2 (aggressive) twice
// that.
func (p Pace) Profile(of uint32) Pace {
	return Pace{Count: p.Count * of, Interval: p.Interval * time.Duration(of)}
}

// window is the minimum time over which a rate of completions is measured.
const window = time.Millisecond

// Meter tells whether a queue's completions come fast.
type Meter struct {
	Fast  bool
	since clock.Time
	from  uint32 // number of completions then
}

// Look updates the meter with the number of completions so far.
func (r *Meter) Look(now clock.Time, n, low, high uint32) {
	passed := now.Sub(r.since)
	if passed < window {
		return
	}
	switch rate := uint64(n-r.from) * uint64(time.Second) / uint64(passed); {
	case rate >= uint64(high):
		r.Fast = true
	case rate < uint64(low):
		r.Fast = false
	}
	r.since, r.from = now, n
}

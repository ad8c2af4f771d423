package device

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/moderation"
)

// Moderation is how an adapter delays the events of completion queues whose programs have not called
// ModerateCQ themselves. Completions on the direct path raise their events without the adapter.
type Moderation = moderation.Setting

// Pace is how long an event is delayed.
type Pace = moderation.Pace

// pace returns how long the event of a completion is delayed.
func (q *cq) pace(now clock.Time, receive bool) Pace {
	m := &q.adapter.cfg.Moderation
	switch {
	case q.own:
		return q.chosen
	case !receive:
		return m.Send
	case m.Adaptive:
		if q.meter.Look(now, q.ring.Produced(), m.Low, m.High); !q.meter.Fast {
			return Pace{}
		}
	}
	return m.Receive
}

package counters

import (
	"time"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/pause"
)

// untagged is the part of a port's traffic that has no priority.
const untagged = pause.Priorities

// priorityWords says where the counters of sets are read that have an instance for each priority, by priority.
var priorityWords = map[string][pause.Priorities]map[string]func(*device.Counters) uint64{"adapter_qos": eachPriority()}

func eachPriority() (all [pause.Priorities]map[string]func(*device.Counters) uint64) {
	for p := range all {
		all[p] = pauseWords(p)
	}
	return all
}

// pauseWords are those of the pauses of a priority; of the whole link if it is untagged.
func pauseWords(priority int) map[string]func(*device.Counters) uint64 {
	of := func(c *device.Counters) *pause.Counts {
		if priority == untagged {
			return &c.Flow.Global
		}
		return &c.Flow.Priority[priority]
	}
	us := func(d time.Duration) uint64 { return uint64(d.Microseconds()) }
	return map[string]func(*device.Counters) uint64{
		"sent_pause_frames":      func(c *device.Counters) uint64 { return of(c).Sent },
		"sent_pause_seconds":     func(c *device.Counters) uint64 { return us(of(c).SentTime) },
		"received_pause_frames":  func(c *device.Counters) uint64 { return of(c).Received },
		"received_pause_seconds": func(c *device.Counters) uint64 { return us(of(c).ReceivedTime) },
	}
}

// readPriority is readAdapter for a priority; what is not counted by priority is 0.
func readPriority(set string, a *Adapter, b *base, priority int) readTotal {
	from := a.Before
	if b != nil && b.restarts == a.Restarts {
		from = &b.words
	}
	return func(short string) (now, before uint64) {
		at := priorityWords[set][priority][short]
		if at == nil {
			return 0, 0
		}
		if from != nil {
			before = at(from)
		}
		return at(&a.Counters), before
	}
}

// controls are received MAC control frames. An Ethernet function has those of its port among its own.
func controls(c *device.Counters) uint64 {
	if c.Ethernet != nil {
		return c.Ethernet.Counters.Control
	}
	return c.Flow.Control
}

func unknownControls(c *device.Counters) uint64 {
	if c.Ethernet != nil {
		return c.Ethernet.Counters.ControlUnknown
	}
	return c.Flow.Unknown
}

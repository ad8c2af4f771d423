package collector

import (
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/internal/port"
)

// priorityWords says where the counters of a priority of an adapter's port are read: those of frames without one at port.Untagged.
var priorityWords = map[string]func(c *device.Counters, part int) uint64{
	"received_bytes":         func(c *device.Counters, p int) uint64 { return c.Arrived[p].Bytes },
	"received_packets":       func(c *device.Counters, p int) uint64 { return c.Arrived[p].Packets },
	"sent_bytes":             func(c *device.Counters, p int) uint64 { return c.Sent[p].Bytes },
	"sent_packets":           func(c *device.Counters, p int) uint64 { return c.Sent[p].Packets },
	"bytes":                  func(c *device.Counters, p int) uint64 { return c.Arrived[p].Bytes + c.Sent[p].Bytes },
	"packets":                func(c *device.Counters, p int) uint64 { return c.Arrived[p].Packets + c.Sent[p].Packets },
	"sent_pause_frames":      func(c *device.Counters, p int) uint64 { return pauses(c, p).Sent },
	"sent_pause_seconds":     func(c *device.Counters, p int) uint64 { return uint64(pauses(c, p).SentTime.Microseconds()) },
	"received_pause_frames":  func(c *device.Counters, p int) uint64 { return pauses(c, p).Received },
	"received_pause_seconds": func(c *device.Counters, p int) uint64 { return uint64(pauses(c, p).ReceivedTime.Microseconds()) },
	"sent_discarded_frames": func(c *device.Counters, p int) uint64 { // untagged ones are of priority 0
		return c.Flow.Discards[p%port.Untagged]
	},
}

// pauses returns the pauses of a priority, or of the whole link.
func pauses(c *device.Counters, part int) *pause.Counts {
	if part == port.Untagged {
		return &c.Flow.Global
	}
	return &c.Flow.Priority[part]
}

// readPriority reads the totals of a priority since the adapter was restarted or the set was reset.
func readPriority(a *Adapter, b *base, part int) readTotal {
	from := a.Before
	if b != nil && b.restarts == a.Restarts {
		from = &b.words
	}
	return func(short string) (now, before uint64) {
		at := priorityWords[short]
		if at == nil {
			return 0, 0
		}
		if from != nil {
			before = at(from, part)
		}
		return at(&a.Counters, part), before
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

// discardedPackets are received packets for which there was no room.
func discardedPackets(c *device.Counters) uint64 {
	n := c.Link.ReceiveDrops + ethernetOf(c).Counters.NoBuffer
	for _, lost := range c.Flow.Overruns {
		n += lost
	}
	return n
}

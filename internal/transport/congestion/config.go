package congestion

import (
	"cmp"

	"github.com/softvpi/softvpi/internal/command"
)

// Config limits the packets in flight to one destination address, shared by all QPs to that address. A
// receiver's socket buffer is finite, and nothing below slows a sender down.
type Config struct {
	Start int // initial number of packets; 0 means 32
	Min   int // minimum number of packets; 0 means 2
	Max   int // maximum number of packets; 0 means 512
	// Near replaces Max for a destination that the same loop serves (frame.Route.Near); 0 means 128, but
	// at most Max and at least Start. There, sender and receiver take turns on one processor: a longer
	// queue between them gains nothing, and its packets leave the near caches.
	Near int
}

// Complete fills in the defaults and checks the rest. Errors are *command.Error.
func (c *Config) Complete() error {
	c.Start = cmp.Or(c.Start, 32)
	c.Min = cmp.Or(c.Min, 2)
	c.Max = cmp.Or(c.Max, 512)
	c.Near = cmp.Or(c.Near, max(c.Start, min(128, c.Max)))
	if c.Min < 1 || c.Start < c.Min || c.Near < c.Start || c.Max < c.Near || c.Max > 1<<20 {
		return command.Errorf(command.Invalid, "Window is %v, want 1 <= Min <= Start <= Near <= Max <= 1048576", *c)
	}
	return nil
}

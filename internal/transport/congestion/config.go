package congestion

import (
	"cmp"

	"github.com/softvpi/softvpi/internal/command"
)

// Config bounds the packets in flight to one destination address, which
// all QPs to that address share. A receiver's socket buffer is finite, and
// nothing below slows a sender down.
type Config struct {
	Start int // packets at first; 0 means 32
	Min   int // packets at least; 0 means 2
	Max   int // packets at most; 0 means 512
	// Near is the packets at most, instead of Max, to a destination that the same loop serves
	// (frame.Route.Near); 0 means 128, or Max where that is less and Start where that is more. Sender and receiver take turns on one processor
	// there: nothing is gained by a longer queue between them, and what waits in it leaves the near caches.
	Near int
}

// Complete fills in what is 0 and checks the rest. Errors are *command.Error.
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

package bench

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// trace measures what the trace of a driver costs writes between two drivers, by UDP sockets: a session like the one that runs from the
// start, at level information, beside one that records nothing. With records of packets it costs more by far (docs/dumps.md).
func (r *runner) trace() error {
	return r.alternate(live{part: "trace", name: "trace at level information", least: 0.98, set: setTrace})
}

// setTrace has a driver begin a session in place of the one before, whatever that recorded: to stop one writes files, and that is to be
// before each turn or before none.
func setTrace(ctx context.Context, c *api.Client, on bool) error {
	s, err := c.TraceStatus(ctx)
	if err == nil && !s.Automatic {
		_, err = c.Trace(ctx, api.TraceRequest{Action: api.TraceStop})
	}
	if err != nil {
		return err
	}
	level := "off"
	if on {
		level = "information"
	}
	_, err = c.Trace(ctx, api.TraceRequest{Action: api.TraceStart, Level: level, Megabytes: 8}) // as much as the automatic one has
	return err
}

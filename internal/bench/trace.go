package bench

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// trace measures what the trace of a driver costs writes between two drivers, by UDP sockets: the session that runs from the start, at
// level information, beside one that records nothing. With records of packets it costs more by far (docs/dumps.md).
func (r *runner) trace() error {
	return r.alternate(live{part: "trace", name: "trace at level information", least: 0.98, set: setTrace})
}

// setTrace has a driver record with its automatic session, or with one in its place that records nothing.
func setTrace(ctx context.Context, c *api.Client, on bool) error {
	s, err := c.TraceStatus(ctx)
	if err != nil || s.Automatic == on {
		return err
	}
	q := api.TraceRequest{Action: api.TraceStop}
	if !on {
		q = api.TraceRequest{Action: api.TraceStart, Level: "off", Megabytes: 1}
	}
	_, err = c.Trace(ctx, q)
	return err
}

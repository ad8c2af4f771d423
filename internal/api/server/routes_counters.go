package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/counters/collector"
)

type countersQuery struct {
	Path []string `query:"path,explode" doc:"As typeperf has it: \\Set(Instance)\\Counter, or set.counter; any number of times. None: all."`
}

// counterRoutes adds the routes for counters.
func (s *Server) counterRoutes(c *collector.Collector) {
	register(s, operation("GET", "/counters/sets", "counter-sets", "The counter sets with their instances and counters"),
		func(context.Context, *struct{}) (*one[[]counters.Set], error) { return body(c.Sets()), nil })
	register(s, operation("GET", "/counters", "counters", "What the counters are at this moment"),
		func(_ context.Context, in *countersQuery) (*one[counters.Snapshot], error) {
			snapshot, err := c.Snapshot(in.Path...)
			return body(snapshot), err
		})
	register(s, operation("POST", "/counters/reset", "reset-counters", "Set the counters of a set back"),
		func(_ context.Context, in *struct{ Body counters.ResetRequest }) (*struct{}, error) {
			return nil, c.Reset(in.Body)
		})
	s.raw(operation("GET", "/metrics", "metrics", "The counters in the text form of Prometheus"), "text/plain", c.Metrics().ServeHTTP)
}

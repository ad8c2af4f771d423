package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// tracing is implemented by a Driver that records traces, and is then served.
type tracing interface {
	// Trace starts, stops or writes a trace, and returns what the session has recorded.
	Trace(api.TraceRequest) (api.TraceStatus, error)
	// TraceStatus returns what the session has recorded.
	TraceStatus() (api.TraceStatus, error)
}

func (s *Server) traceRoutes(d tracing) {
	register(s, operation("GET", "/trace", "trace-status", "What the trace has recorded"),
		func(context.Context, *struct{}) (*one[api.TraceStatus], error) {
			out, err := d.TraceStatus()
			return body(out), err
		})
	register(s, operation("POST", "/trace", "trace", "Start, stop or write a trace of the driver"),
		func(_ context.Context, in *struct{ Body api.TraceRequest }) (*one[api.TraceStatus], error) {
			out, err := d.Trace(in.Body)
			return body(out), err
		})
}

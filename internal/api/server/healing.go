package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// FaultSource is implemented by a driver in which things can be made to go wrong, and is then served.
type FaultSource interface {
	// InjectFault does so. It is refused unless the configuration allows it.
	InjectFault(api.FaultRequest) error
}

func (s *Server) faultRoutes(d FaultSource) {
	register(s, operation("POST", "/adapters/{name}/faults", "inject-fault",
		"Make something go wrong in an adapter, to see that it is found; refused unless the configuration has fault_injection"),
		func(_ context.Context, in *struct {
			AdapterPath
			Body api.FaultRequest
		}) (*struct{}, error) {
			in.Body.Adapter = in.Name
			return nil, d.InjectFault(in.Body)
		})
}

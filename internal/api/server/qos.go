package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// QoSSource is implemented by a driver whose adapters agree about priorities with their peers, and is then served.
type QoSSource interface {
	// SetQoS changes what an adapter does about priorities: all or, if anything is invalid, nothing.
	SetQoS(api.QoSRequest) error
}

func (s *Server) qosRoutes(d QoSSource) {
	register(s, operation("PATCH", "/adapters/{name}/qos", "set-qos", "Change what an adapter does about priorities, and how it speaks DCBX"),
		func(_ context.Context, in *struct {
			AdapterPath
			Body api.QoSRequest
		}) (*struct{}, error) {
			in.Body.Adapter = in.Name
			return nil, d.SetQoS(in.Body)
		})
}

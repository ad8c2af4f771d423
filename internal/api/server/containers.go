package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// ContainerSource is implemented by a driver with sockets for containers, and is then served.
type ContainerSource interface {
	SetContainer(api.ContainerRequest) error
}

func (s *Server) containerRoutes(d ContainerSource) {
	register(s, operation("PATCH", api.ContainersURL+"/{number}", "set-container", "Change the quota of a container, until the driver ends"),
		func(_ context.Context, in *struct {
			Number int `path:"number" doc:"Number of the container, from 0."`
			Body   api.ContainerRequest
		}) (*struct{}, error) {
			in.Body.Number = in.Number
			return nil, d.SetContainer(in.Body)
		})
}

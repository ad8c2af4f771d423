package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// ipoibSource is a driver that tells the end points of IPoIB interfaces (WinOF 5.50, 5.5.2.8: mlxtool dbg ipoib-ep). A Driver that has
// it serves it.
type ipoibSource interface {
	// Endpoints are those of the interface of a connection, of all for an empty one. The error is a *FieldError.
	Endpoints(connection string) ([]api.Endpoints, error)
}

func (s *Server) ipoibRoutes(d ipoibSource) {
	register(s, operation("GET", api.EndpointsURL, "ipoib-endpoints", "The end points that IPoIB interfaces know"),
		func(_ context.Context, in *struct {
			Connection string `query:"connection" doc:"Of the interface: an InfiniBand adapter or a virtual port. Empty: all."`
		}) (*one[[]api.Endpoints], error) {
			list, err := d.Endpoints(in.Connection)
			return body(list), err
		})
}

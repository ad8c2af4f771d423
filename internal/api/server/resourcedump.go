package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// ResourceSource is implemented by a driver that dumps objects of adapters by their numbers, and is then served.
type ResourceSource interface {
	// ResourceSegments returns the kinds of objects that can be dumped.
	ResourceSegments(adapter string) ([]api.ResourceSegment, error)
	// DumpResource writes objects to a folder of their own.
	DumpResource(adapter string, q api.ResourceDumpRequest) (api.ResourceDump, error)
}

func (s *Server) resourceDumpRoutes(d ResourceSource) {
	register(s, operation("GET", "/adapters/{name}/resource-segments", "resource-segments", "The kinds of objects that can be dumped"),
		func(_ context.Context, in *AdapterPath) (*one[[]api.ResourceSegment], error) {
			list, err := d.ResourceSegments(in.Name)
			return body(list), err
		})
	register(s, operation("POST", "/adapters/{name}/resource-dumps", "dump-resource",
		"Write objects by their numbers to a folder, with those that they refer to"),
		func(_ context.Context, in *struct {
			AdapterPath
			Body api.ResourceDumpRequest
		}) (*one[api.ResourceDump], error) {
			out, err := d.DumpResource(in.Name, in.Body)
			return body(out), err
		})
}

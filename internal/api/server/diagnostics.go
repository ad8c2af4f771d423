package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// Diagnostics is implemented by a Driver that helps to find faults, and is then served.
type Diagnostics interface {
	// ResetAdapter restarts an adapter like RestartAdapter, with the events of a reset.
	ResetAdapter(name string) error
	Resources(adapter string) (api.Resources, error)
	// Commands returns statistics of what programs requested from an adapter.
	Commands(adapter string) ([]api.CallStats, error)
	// Dump writes the state of an adapter to files.
	Dump(adapter string, q api.DumpRequest) (api.Dump, error)
}

func (s *Server) diagnosticRoutes(d Diagnostics) {
	log := s.calls
	s.api.UseMiddleware(log.watch)
	register(s, operation("POST", "/adapters/{name}/reset", "reset-adapter", "Reset an adapter: its connections end, and it starts again"),
		func(_ context.Context, in *AdapterPath) (*struct{}, error) { return nil, d.ResetAdapter(in.Name) })
	register(s, operation("GET", "/adapters/{name}/resources", "resources",
		"The objects that an adapter has and may have, and its partition keys"),
		func(_ context.Context, in *AdapterPath) (*one[api.Resources], error) {
			r, err := d.Resources(in.Name)
			return body(r), err
		})
	register(s, operation("GET", "/adapters/{name}/commands", "commands",
		"The commands that programs gave to an adapter, with their times"),
		func(_ context.Context, in *AdapterPath) (*one[[]api.CallStats], error) {
			list, err := d.Commands(in.Name)
			return body(list), err
		})
	register(s, operation("GET", "/adapters/{name}/requests", "requests",
		"The requests to this interface about an adapter, with their times"),
		func(_ context.Context, in *AdapterPath) (*one[[]api.CallStats], error) {
			list, err := log.of(in.Name)
			return body(list), err
		})
	register(s, operation("POST", "/adapters/{name}/dumps", "dump", "Write the state of an adapter to files"),
		func(_ context.Context, in *struct {
			AdapterPath
			Body api.DumpRequest
		}) (*one[api.Dump], error) {
			out, err := d.Dump(in.Name, in.Body)
			return body(out), err
		})
}

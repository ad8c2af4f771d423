package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// FunctionSource is implemented by a driver with virtual functions, and is then served.
type FunctionSource interface {
	Functions() []api.FunctionStatus
	CreateFunction(api.FunctionRequest) (api.FunctionStatus, error)
	// SetFunction changes one: all or, if anything is invalid, nothing.
	SetFunction(api.FunctionRequest) error
	RemoveFunction(name string) error
	// ResetFunction ends its connections, and has it start again; others go on.
	ResetFunction(name string) error
}

// FunctionPath identifies a virtual function in a path.
type FunctionPath struct {
	Name string `path:"name" doc:"Name of the virtual function."`
}

func (s *Server) functionRoutes(d FunctionSource) {
	register(s, operation("GET", api.FunctionsURL, "functions", "The virtual functions of all adapters"),
		func(context.Context, *struct{}) (*one[[]api.FunctionStatus], error) { return body(d.Functions()), nil })
	register(s, operation("POST", api.FunctionsURL, "create-function", "Create a virtual function at the port of an adapter"),
		func(_ context.Context, in *struct{ Body api.FunctionRequest }) (*one[api.FunctionStatus], error) {
			f, err := d.CreateFunction(in.Body)
			return body(f), err
		})
	register(s, operation("PATCH", api.FunctionsURL+"/{name}", "set-function", "Change a virtual function"),
		func(_ context.Context, in *struct {
			FunctionPath
			Body api.FunctionRequest
		}) (*struct{}, error) {
			in.Body.Name = in.Name
			return nil, d.SetFunction(in.Body)
		})
	register(s, operation("DELETE", api.FunctionsURL+"/{name}", "remove-function", "Remove a virtual function"),
		func(_ context.Context, in *FunctionPath) (*struct{}, error) { return nil, d.RemoveFunction(in.Name) })
	register(s, operation("POST", api.FunctionsURL+"/{name}/reset", "reset-function",
		"Reset a virtual function: its connections end, and it starts again; others at the port go on"),
		func(_ context.Context, in *FunctionPath) (*struct{}, error) { return nil, d.ResetFunction(in.Name) })
}

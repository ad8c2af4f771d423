package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/fabric/state"
)

// FabricSource is implemented by a driver that reaches the fabrics that run on its machine, and is then served. They are processes of
// their own (softvpi fabric run), or drivers whose fabrics have names.
type FabricSource interface {
	// Fabrics returns the names of those that the driver's user runs, that which its adapters are plugged into first.
	Fabrics() []string
	// FabricState returns the state of all ports of one.
	FabricState(name string) (state.Part, error)
	// CommandFabric makes one execute a command, and returns what it says.
	CommandFabric(name string, words []string) (string, error)
}

func (s *Server) fabricRoutes(d FabricSource) {
	register(s, operation("GET", "/fabrics", "fabrics", "The names of the fabrics that run on this machine for the driver's user"),
		func(context.Context, *struct{}) (*one[[]string], error) { return body(d.Fabrics()), nil })
	register(s, operation("GET", "/fabrics/{name}", "fabric", "The ports of a fabric with their states and counters"),
		func(_ context.Context, in *struct {
			Name string `path:"name"`
		}) (*one[state.Part], error) {
			p, err := d.FabricState(in.Name)
			return body(p), err
		})
	register(s, operation("POST", "/fabrics/{name}/commands", "command-fabric", "Make a fabric execute a command, such as unlink host0"),
		func(_ context.Context, in *struct {
			Name string `path:"name"`
			Body api.FabricCommand
		}) (*one[api.FabricAnswer], error) {
			text, err := d.CommandFabric(in.Name, in.Body.Words)
			return body(api.FabricAnswer{Text: text}), err
		})
}

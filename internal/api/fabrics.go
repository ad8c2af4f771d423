package api

import (
	"context"
	"net/url"

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

// FabricCommand is a command for a fabric.
type FabricCommand struct {
	Words []string `json:"words" doc:"The command with its arguments, as of softvpi fabric do."`
}

// FabricAnswer is what a fabric says to a command.
type FabricAnswer struct {
	Text string `json:"text"`
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
			Body FabricCommand
		}) (*one[FabricAnswer], error) {
			text, err := d.CommandFabric(in.Name, in.Body.Words)
			return body(FabricAnswer{text}), err
		})
}

// Fabrics returns the names of the fabrics that run.
func (c *Client) Fabrics(ctx context.Context) (names []string, err error) {
	err = c.call(ctx, "GET", "/fabrics", nil, nil, &names)
	return names, err
}

// Fabric returns the ports of a fabric.
func (c *Client) Fabric(ctx context.Context, name string) (p state.Part, err error) {
	err = c.call(ctx, "GET", "/fabrics/"+url.PathEscape(name), nil, nil, &p)
	return p, err
}

// CommandFabric makes a fabric execute a command, and returns what it says.
func (c *Client) CommandFabric(ctx context.Context, name string, words ...string) (string, error) {
	var a FabricAnswer
	err := c.call(ctx, "POST", "/fabrics/"+url.PathEscape(name)+"/commands", nil, FabricCommand{words}, &a)
	return a.Text, err
}

package api

import (
	"context"
	"net/url"

	"github.com/softvpi/softvpi/internal/fabric/state"
)

// FabricCommand is a command for a fabric.
type FabricCommand struct {
	Words []string `json:"words" doc:"The command with its arguments, as of softvpi fabric do."`
}

// FabricAnswer is what a fabric says to a command.
type FabricAnswer struct {
	Text string `json:"text"`
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

package api

import (
	"context"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/registry"
)

// Parameter is a parameter of a device's non-volatile configuration. Those that were never set have their
// default.
type Parameter struct {
	Name    string  `json:"name"`
	Default uint64  `json:"default"`
	Current *uint64 `json:"current"` // value with which the adapter started; nil: not set then
	New     *uint64 `json:"new"`     // value that the next start will use; nil: not set
	Status  string  `json:"status"`  // built, stored only
}

// Pending reports whether the next start of the adapter changes the parameter.
func (p Parameter) Pending() bool {
	if p.Current == nil || p.New == nil {
		return p.Current != p.New
	}
	return *p.Current != *p.New
}

// Identity returns the adapter as the registry identifies it.
func (a *AdapterStatus) Identity() registry.Adapter {
	return registry.Adapter{Name: a.Name, Generation: a.Class(), Number: a.Number, DeviceNumber: a.DeviceNumber}
}

// Class returns the adapter's generation.
func (a *AdapterStatus) Class() catalogue.Generation {
	if a.Generation == GenerationName(catalogue.MLX4) {
		return catalogue.MLX4
	}
	return catalogue.MLX5
}

// Parameters returns those of the device's non-volatile configuration, in force and as stored in the
// registry.
func (a *AdapterStatus) Parameters(r *registry.Registry) []Parameter {
	next := r.Configuration(a.Identity())
	var out []Parameter
	for _, p := range catalogue.ParametersFor(catalogue.ConfigTool, a.Class()) {
		x := Parameter{Name: p.Name, Default: p.Default.Number, Status: "stored only"}
		if p.Status == catalogue.Built {
			x.Status = "built"
		}
		if n, ok := a.Configuration[p.Name]; ok {
			x.Current = &n
		}
		if n, ok := next[p.Name]; ok {
			x.New = &n
		}
		out = append(out, x)
	}
	return out
}

// Configure changes the non-volatile configuration of an adapter's device, all or nothing. It takes effect
// when the adapter starts again.
func (c *Client) Configure(ctx context.Context, a *AdapterStatus, set map[string]*uint64) error {
	var changes []registry.Change
	for _, p := range catalogue.ParametersFor(catalogue.ConfigTool, a.Class()) {
		n, ok := set[p.Name]
		if !ok {
			continue
		}
		x, err := a.Identity().Configure(p, n)
		if err != nil {
			return err
		}
		changes = append(changes, x)
	}
	_, err := c.ChangeRegistry(ctx, changes, false) // notices about keys do not concern parameters
	return err
}

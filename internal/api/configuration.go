package api

import (
	"context"
	"fmt"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/firmware"
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

// FirmwareStatus is the image that an adapter runs.
type FirmwareStatus struct {
	Version     string `json:"version"`
	Released    string `json:"released"`
	PSID        string `json:"psid"`
	Name        string `json:"name"`
	Description string `json:"description"`
	GUID        string `json:"base_guid"` // N/A: the adapters have their own
	MAC         string `json:"base_mac"`  // likewise
	Digest      string `json:"digest"`    // SHA-256 of the image
}

// FirmwareOf describes an image.
func FirmwareOf(m *firmware.Image) FirmwareStatus {
	return FirmwareStatus{m.Version.String(), m.Released, m.PSID, m.Name, m.Description, m.GUIDText(), m.MACText(),
		fmt.Sprintf("%x", m.Digest())}
}

// Burn writes an image, which must pass its Check, to the flash of an adapter's device, whole or not at all. Its ports run
// it when they start again.
func (c *Client) Burn(ctx context.Context, a *AdapterStatus, m *firmware.Image) error {
	_, err := c.ChangeRegistry(ctx, []registry.Change{a.Identity().Burn(m)}, false)
	return err
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
	image, _ := r.Firmware(a.Identity())
	var out []Parameter
	for _, p := range catalogue.ParametersFor(catalogue.ConfigTool, a.Class()) {
		x := Parameter{Name: p.Name, Default: p.Default.Number, Status: "stored only"}
		if p.Status == catalogue.Built {
			x.Status = "built"
		}
		if n, ok := image.Parameters[p.Name]; ok {
			x.Default = n
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

package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// VirtualSwitchSource is implemented by a driver with virtual switches, and is then served.
type VirtualSwitchSource interface {
	VirtualSwitches() []api.VirtualSwitch
	CreateVirtualSwitch(api.SwitchRequest) (api.VirtualSwitch, error)
	// SetVirtualSwitch changes one: all or, if anything is invalid, nothing.
	SetVirtualSwitch(api.SwitchSettings) error
	// RemoveVirtualSwitch removes a switch with its network adapters.
	RemoveVirtualSwitch(name string) error
	AddSwitchAdapter(api.SwitchAdapterRequest) (api.SwitchAdapter, error)
	// SetSwitchAdapter changes one: all or, if anything is invalid, nothing.
	SetSwitchAdapter(api.SwitchAdapterRequest) error
	RemoveSwitchAdapter(name, function string) error
}

// SwitchPath identifies a virtual switch in a path.
type SwitchPath struct {
	Name string `path:"name" doc:"Name of the virtual switch."`
}

// SwitchAdapterPath identifies a network adapter of a virtual switch in a path.
type SwitchAdapterPath struct {
	SwitchPath
	Function string `path:"function" doc:"Name of the adapter's function."`
}

func (s *Server) vswitchRoutes(d VirtualSwitchSource) {
	register(s, operation("GET", api.VirtualSwitchesURL, "vswitches", "The virtual switches with their network adapters"),
		func(context.Context, *struct{}) (*one[[]api.VirtualSwitch], error) {
			return body(d.VirtualSwitches()), nil
		})
	register(s, operation("POST", api.VirtualSwitchesURL, "create-vswitch", "Make a virtual switch over an adapter"),
		func(_ context.Context, in *struct{ Body api.SwitchRequest }) (*one[api.VirtualSwitch], error) {
			v, err := d.CreateVirtualSwitch(in.Body)
			return body(v), err
		})
	register(s, operation("PATCH", api.VirtualSwitchesURL+"/{name}", "set-vswitch", "Change a virtual switch"),
		func(_ context.Context, in *struct {
			SwitchPath
			Body api.SwitchSettings
		}) (*struct{}, error) {
			in.Body.Switch = in.Name
			return nil, d.SetVirtualSwitch(in.Body)
		})
	register(s, operation("DELETE", api.VirtualSwitchesURL+"/{name}", "remove-vswitch", "Remove a virtual switch with its network adapters"),
		func(_ context.Context, in *SwitchPath) (*struct{}, error) { return nil, d.RemoveVirtualSwitch(in.Name) })
	register(s, operation("POST", api.VirtualSwitchesURL+"/{name}/adapters", "add-vswitch-adapter", "Add a network adapter to a virtual switch"),
		func(_ context.Context, in *struct {
			SwitchPath
			Body api.SwitchAdapterRequest
		}) (*one[api.SwitchAdapter], error) {
			in.Body.Switch = in.Name
			a, err := d.AddSwitchAdapter(in.Body)
			return body(a), err
		})
	register(s, operation("PATCH", api.VirtualSwitchesURL+"/{name}/adapters/{function}", "set-vswitch-adapter", "Change a network adapter of a virtual switch"),
		func(_ context.Context, in *struct {
			SwitchAdapterPath
			Body api.SwitchAdapterRequest
		}) (*struct{}, error) {
			in.Body.Switch, in.Body.Function = in.Name, in.Function
			return nil, d.SetSwitchAdapter(in.Body)
		})
	register(s, operation("DELETE", api.VirtualSwitchesURL+"/{name}/adapters/{function}", "remove-vswitch-adapter",
		"Remove a network adapter from a virtual switch"),
		func(_ context.Context, in *SwitchAdapterPath) (*struct{}, error) {
			return nil, d.RemoveSwitchAdapter(in.Name, in.Function)
		})
}

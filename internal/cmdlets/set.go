package cmdlets

import (
	"context"
	"net/url"
	"slices"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
	"github.com/softvpi/softvpi/internal/registry"
)

// Driver is what commands use of the management interface of a driver; *api.Client is one.
type Driver interface {
	Status(context.Context) (*api.Status, error)
	SetAdapter(context.Context, api.AdapterRequest) error
	RestartAdapter(ctx context.Context, name string) error
	SetQoS(context.Context, api.QoSRequest) error
	Settings(ctx context.Context, adapter string) ([]api.Setting, error)
	Set(ctx context.Context, adapter, key, value string) (api.Notices, error)
	Reset(ctx context.Context, adapter, key string) (api.Notices, error)
	LoadRegistry(context.Context) (*registry.Registry, error)
	CreateFunction(context.Context, api.FunctionRequest) (api.FunctionStatus, error)
	SetFunction(context.Context, api.FunctionRequest) error
	RemoveFunction(ctx context.Context, name string) error
	CreateVirtualSwitch(context.Context, api.SwitchRequest) (api.VirtualSwitch, error)
	SetVirtualSwitch(context.Context, api.SwitchSettings) error
	RemoveVirtualSwitch(ctx context.Context, name string) error
	AddSwitchAdapter(context.Context, api.SwitchAdapterRequest) (api.SwitchAdapter, error)
	SetSwitchAdapter(context.Context, api.SwitchAdapterRequest) error
	RemoveSwitchAdapter(ctx context.Context, name, function string) error
	Overlay(context.Context) (api.Overlay, error)
	AddOverlayEntry(context.Context, api.OverlayRequest) (api.OverlayEntry, error)
	RemoveOverlayEntries(context.Context, api.OverlayRequest) ([]api.OverlayEntry, error)
	ChangeRegistry(ctx context.Context, changes []registry.Change, unchecked bool) ([]registry.Notice, error)
	Get(ctx context.Context, path string, query url.Values, out any) error
}

// Set is the commands of a driver.
type Set struct {
	list    []*powershell.Cmdlet
	modules []string
}

// cmdlet is a command with what it does.
type cmdlet struct {
	powershell.Cmdlet
	do func(*run) error
}

// run is one run of a command.
type run struct {
	*powershell.Call
	driver  Driver
	network Network
	skipped bool // -WhatIf or an answer to -Confirm kept something from being done
}

// Should reports whether to do something, and notes it if not.
func (r *run) Should(action, target string) bool {
	ok := r.Call.Should(action, target)
	r.skipped = r.skipped || !ok
	return ok
}

// New returns the commands over a driver, and over the network of its system.
func New(d Driver, n Network) *Set {
	s := &Set{}
	for _, e := range append(table(), module("Microsoft.PowerShell.Core", s.help())...) {
		c := e.Cmdlet
		c.Run = func(call *powershell.Call) error { return e.do(&run{Call: call, driver: d, network: n}) }
		s.list = append(s.list, &c)
		if !slices.Contains(s.modules, c.Module) {
			s.modules = append(s.modules, c.Module)
		}
	}
	return s
}

// Cmdlet returns the command of a name or an alias in any letter case; nil: there is none.
func (s *Set) Cmdlet(name string) *powershell.Cmdlet {
	for _, c := range s.list {
		if c.Is(name) {
			return c
		}
	}
	return nil
}

// All returns the commands, module by module.
func (s *Set) All() []*powershell.Cmdlet { return s.list }

// Modules returns the names of the modules.
func (s *Set) Modules() []string { return s.modules }

// table returns all commands.
func table() []cmdlet {
	return slices.Concat(module("NetQos", netQoS()), module("DcbQos", dcbQoS()), module("NetAdapter", netAdapter()),
		module("NetAdapter", features()), module("NetTCPIP", netTCPIP()), module("NetWNV", netVirtualization()), module("Hyper-V", append(hyperV(), extensions()...)),
		module("SmbShare", smb()), module("Microsoft.PowerShell.Diagnostics", counterCmdlets()), module("Mellanox", mlnx()), netDirect(),
		windowsModules())
}

func module(name string, list []cmdlet) []cmdlet {
	for i := range list {
		list[i].Module = name
	}
	return list
}

package main

import (
	"github.com/softvpi/softvpi/internal/api"
)

type vswitchCmd struct {
	List          vswitchListCmd      `cmd:"" help:"Show the virtual switches with their network adapters."`
	Create        vswitchCreateCmd    `cmd:"" help:"Make a virtual switch over an adapter, which stays until it is removed, also over restarts of the driver."`
	Configure     vswitchConfigureCmd `cmd:"" help:"Change a virtual switch."`
	Remove        vswitchRemoveCmd    `cmd:"" help:"Remove a virtual switch with its network adapters."`
	Add           vswitchAddCmd       `cmd:"" help:"Add a network adapter to a virtual switch: a function at the port of the switch's adapter."`
	Set           vswitchSetCmd       `cmd:"" help:"Change a network adapter of a virtual switch. Others are not disturbed."`
	RemoveAdapter vswitchDropCmd      `cmd:"" name:"remove-adapter" help:"Remove a network adapter from a virtual switch. Its programs are told that their device is gone."`
}

// switchNamed is the argument that names a virtual switch.
type switchNamed struct {
	Switch string `arg:"" help:"Name of the virtual switch."`
}

// switchAdapterSettings are what add and set take.
type switchAdapterSettings struct {
	Settings []string `arg:"" optional:"" help:"name= (as Get-VMNetworkAdapter shows it), machine= (the virtual machine that has it; none: the host), iov= (0 to 100; 0: a machine's adapter has its network interface alone), vmq= (0 to 100; 0: one that is no virtual function has no receive queue of its own), vmmq=on|off (whether one that is no virtual function has several receive queues), queues= (how many it asks for), vfp=on|off (whether the switch's filter platform is enabled at the port of a machine's adapter), rdma=on|off, and those of softvpi vf: mac, address, vlan, vlans, vsid, link, max, min, trust, group, tap, host, hostpeer, netns. Those that are not named stay as they are."`
}

type vswitchListCmd struct {
	showFlags `embed:""`
}

func (c vswitchListCmd) Run(s *session) error {
	list, err := c.admin().VirtualSwitches(s.ctx)
	return showAll(s, c.JSON, list, err)
}

type vswitchCreateCmd struct {
	showFlags `embed:""`
	IOV       bool   `name:"iov" help:"Adapters of machines are virtual functions, with RDMA (SR-IOV)."`
	Frames    bool   `name:"packetdirect" help:"Programs of its adapters may have queues of frames (PacketDirect)."`
	VFP       bool   `name:"vfp" help:"Put the filter platform at its ports: those of machines pass nothing until it is disabled there."`
	Name      string `arg:"" help:"Name of the switch: 1 to 63 printable characters."`
	Adapter   string `arg:"" help:"Name of the adapter that it is to be over."`
}

func (c vswitchCreateCmd) Run(s *session) error {
	v, err := c.admin().CreateVirtualSwitch(s.ctx,
		api.SwitchRequest{Name: c.Name, Adapter: c.Adapter, IOV: c.IOV, PacketDirect: c.Frames, VFP: c.VFP})
	return show(s, c.JSON, &v, err)
}

type vswitchConfigureCmd struct {
	socketFlag  `embed:""`
	switchNamed `embed:""`
	Settings    []string `arg:"" optional:"" help:"packetdirect=on|off (whether programs of its adapters may have queues of frames), vfp=on|off (whether the filter platform is at its ports)."`
}

func (c vswitchConfigureCmd) Run(s *session) error {
	return c.admin().SetVirtualSwitch(s.ctx, api.SwitchSettings{Switch: c.Switch, Settings: settingsOf(c.Settings)})
}

type vswitchRemoveCmd struct {
	socketFlag  `embed:""`
	switchNamed `embed:""`
}

func (c vswitchRemoveCmd) Run(s *session) error {
	return c.admin().RemoveVirtualSwitch(s.ctx, c.Switch)
}

type vswitchAddCmd struct {
	showFlags             `embed:""`
	switchNamed           `embed:""`
	Name                  string `arg:"" help:"Name of its function: letters, digits, and - _ . between them; at most 31."`
	switchAdapterSettings `embed:""`
}

func (c vswitchAddCmd) Run(s *session) error {
	a, err := c.admin().AddSwitchAdapter(s.ctx,
		api.SwitchAdapterRequest{Switch: c.Switch, Function: c.Name, Settings: settingsOf(c.Settings)})
	return show(s, c.JSON, &a, err)
}

type vswitchSetCmd struct {
	socketFlag            `embed:""`
	switchNamed           `embed:""`
	Name                  string `arg:"" help:"Name of the network adapter's function."`
	switchAdapterSettings `embed:""`
}

func (c vswitchSetCmd) Run(s *session) error {
	return c.admin().SetSwitchAdapter(s.ctx,
		api.SwitchAdapterRequest{Switch: c.Switch, Function: c.Name, Settings: settingsOf(c.Settings)})
}

type vswitchDropCmd struct {
	socketFlag  `embed:""`
	switchNamed `embed:""`
	Name        string `arg:"" help:"Name of the network adapter's function."`
}

func (c vswitchDropCmd) Run(s *session) error {
	return c.admin().RemoveSwitchAdapter(s.ctx, c.Switch, c.Name)
}

package main

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/api"
)

type vfCmd struct {
	List   vfListCmd   `cmd:"" help:"Show the virtual functions."`
	Create vfCreateCmd `cmd:"" help:"Create a virtual function, which stays until it is removed, also over restarts of the driver."`
	Set    vfSetCmd    `cmd:"" help:"Change a virtual function. Those of others are not disturbed."`
	Reset  vfResetCmd  `cmd:"" help:"Reset a virtual function: the connections of its programs end, and they may open it again. Others at the port go on."`
	Remove vfRemoveCmd `cmd:"" help:"Remove a virtual function, and forget its settings. Its programs are told that their device is gone."`
}

// vfSettings are what create and set take.
type vfSettings struct {
	Settings []string `arg:"" optional:"" help:"mac=02:00:00:00:00:01, address=192.0.2.9/24, vlan= (0: none, 1 to 4094), vlans= (whose tags its programs may use: none, all, 10+20-29), vsid= (its virtual subnet, 4096 to 16777214; 0: none), link=auto|up|down, max= and min= (Mbit/s, 0: none), queues= (receive queues of its network interface, 1 to 64; 0: as the adapter's keys say), rdma=on|off, trust=on|off, group= (whose members' programs may attach; none), tap= (its network interface, which takes CAP_NET_ADMIN; none), host= (in place of that the card of a virtual machine: datagram:PATH or stream:PATH, the driver's socket; tap:NAME; none), hostpeer= (the machine's datagram socket; none: PATH.peer), netns= (the network namespace where that is opened, by name or path; none), visible=all|netns (whether it is there for programs of the network namespace of its interface alone); at an InfiniBand port guid= (1 or 2 alias GUIDs, 0x0200c90000000001+auto; auto: the subnet manager chooses) and pkeys= (what it has of the port's partitions: default, all, 0x8001+0x7fff). Those that are not named stay as they are. mac, address, vlan, vsid, queues, rdma, tap, host, hostpeer, netns, visible and guid end the function's connections."`
}

type vfListCmd struct {
	showFlags `embed:""`
}

func (c vfListCmd) Run(s *session) error {
	list, err := c.admin().Functions(s.ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(s.env.Stdout, list)
	}
	at := ""
	for i := range list {
		if f := &list[i]; f.Adapter != at {
			at = f.Adapter
			fmt.Fprintln(s.env.Stdout, at)
		}
		list[i].WriteText(s.env.Stdout)
	}
	return nil
}

type vfCreateCmd struct {
	showFlags  `embed:""`
	Adapter    string `arg:"" help:"Name of the adapter at whose port it is to be."`
	Name       string `arg:"" help:"Its name: letters, digits, and - _ . between them; at most 31."`
	vfSettings `embed:""`
}

func (c vfCreateCmd) Run(s *session) error {
	f, err := c.admin().CreateFunction(s.ctx, api.FunctionRequest{Adapter: c.Adapter, Name: c.Name, Settings: settingsOf(c.Settings)})
	return show(s, c.JSON, &f, err)
}

type vfSetCmd struct {
	socketFlag `embed:""`
	Name       string `arg:"" help:"Name of the virtual function."`
	vfSettings `embed:""`
}

func (c vfSetCmd) Run(s *session) error {
	return c.admin().SetFunction(s.ctx, api.FunctionRequest{Name: c.Name, Settings: settingsOf(c.Settings)})
}

// settingsOf returns a list that is not null in JSON.
func settingsOf(list []string) []string { return append([]string{}, list...) }

type vfRemoveCmd struct {
	socketFlag `embed:""`
	Name       string `arg:"" help:"Name of the virtual function."`
}

func (c vfRemoveCmd) Run(s *session) error { return c.admin().RemoveFunction(s.ctx, c.Name) }

type vfResetCmd struct {
	socketFlag `embed:""`
	Name       string `arg:"" help:"Name of the virtual function."`
}

func (c vfResetCmd) Run(s *session) error { return c.admin().ResetFunction(s.ctx, c.Name) }

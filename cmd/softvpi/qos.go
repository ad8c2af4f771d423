package main

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/api"
)

type qosCmd struct {
	Show   qosShowCmd   `cmd:"" help:"Show what ports do about priorities, who decided that, and the neighbours that LLDP has heard."`
	Policy qosPolicyCmd `cmd:"" help:"Give traffic a priority: RDMA connections of a port, or everything that no other policy is for."`
	Set    qosSetCmd    `cmd:"" help:"Set what an adapter does about priorities without a peer, and how it speaks DCBX."`
}

type qosShowCmd struct {
	socketFlag `embed:""`
	Name       string `arg:"" optional:"" help:"Name of the adapter (default: all)."`
	JSON       bool   `name:"json" help:"Print JSON."`
}

func (c qosShowCmd) Run(s *session) error {
	st, err := c.admin().Status(s.ctx)
	if err != nil {
		return err
	}
	type row struct {
		Adapter     string                 `json:"adapter"`
		QoS         *api.QoSStatus         `json:"qos"`
		FlowControl *api.FlowControlStatus `json:"flow_control"`
	}
	chosen, err := adaptersNamed(st, c.Name)
	if err != nil {
		return err
	}
	rows := []row{}
	for _, a := range chosen {
		rows = append(rows, row{a.Name, a.QoS, a.FlowControl})
	}
	if c.JSON {
		return writeJSON(s.env.Stdout, rows)
	}
	for _, r := range rows {
		fmt.Fprintf(s.env.Stdout, "%s\n", r.Adapter)
		r.QoS.WriteText(s.env.Stdout)
		r.FlowControl.WriteText(s.env.Stdout)
	}
	return nil
}

type qosSetCmd struct {
	socketFlag `embed:""`
	Name       string   `arg:"" help:"Name of the adapter, such as \"Ethernet 1\"."`
	Settings   []string `arg:"" help:"willing=on|off, dcbx=auto|ieee|cee, pfc= (priorities: 3,5), prio-tc= (priority:class, 3:1,5:7; the others are in class 0), tc-bw= (class:percent of those that share, 0:40,1:60; the others are strict), tc-rate= (class:Mbit/s, the most that it may send, 3:100,5:300), app= (port:4791=3,ethertype:0x8915=5; also tcp, udp and dscp). none is an empty list, default the default. Settings that are not named stay as they are."`
}

func (c qosSetCmd) Run(s *session) error {
	return c.admin().SetQoS(s.ctx, api.QoSRequest{Adapter: c.Name, Settings: c.Settings})
}

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// qosPolicyCmd are the commands about policies.
type qosPolicyCmd struct {
	Add    qosPolicyAddCmd    `cmd:"" help:"Add a policy to an adapter, or change it."`
	Remove qosPolicyRemoveCmd `cmd:"" help:"Remove a policy of an adapter."`
	List   qosPolicyListCmd   `cmd:"" help:"List the policies of an adapter, the longest match first."`
}

type qosPolicyAddCmd struct {
	socketFlag `embed:""`
	Name       string   `arg:"" help:"Name of the adapter."`
	Policy     string   `arg:"" help:"Name of the policy."`
	Words      []string `arg:"" help:"What it is for: netdirect=PORT (RDMA connections of a port), protocol=tcp|udp, port=FIRST-LAST and to=PREFIX (frames of the host of an Ethernet function), or default (what no other is for). What it does: priority=0..7, and dscp=0..63 for RDMA."`
}

func (c qosPolicyAddCmd) Run(s *session) error {
	text := strings.Join(c.Words, ",")
	p, err := qos.ParsePolicy(c.Policy, text)
	if err != nil {
		return tool.Usagef("%v", err)
	}
	return c.admin().SetQoS(s.ctx, api.QoSRequest{Adapter: c.Name, Settings: []string{"policy:" + c.Policy + "=" + p.String()}})
}

type qosPolicyRemoveCmd struct {
	socketFlag `embed:""`
	Name       string `arg:"" help:"Name of the adapter."`
	Policy     string `arg:"" help:"Name of the policy."`
}

func (c qosPolicyRemoveCmd) Run(s *session) error {
	list, err := policiesNamed(s, c.socketFlag, c.Name)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(p api.QoSPolicy) bool { return p.Name == c.Policy }) {
		return tool.Usagef("adapter %q has no policy %q", c.Name, c.Policy)
	}
	return c.admin().SetQoS(s.ctx, api.QoSRequest{Adapter: c.Name, Settings: []string{"policy:" + c.Policy + "=default"}})
}

type qosPolicyListCmd struct {
	socketFlag `embed:""`
	Name       string `arg:"" help:"Name of the adapter."`
	JSON       bool   `name:"json" help:"Print JSON."`
}

func (c qosPolicyListCmd) Run(s *session) error {
	list, err := policiesNamed(s, c.socketFlag, c.Name)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(s.env.Stdout, list)
	}
	for _, p := range list {
		fmt.Fprintf(s.env.Stdout, "%s: %s\n", p.Name, p.Policy)
	}
	return nil
}

// policiesNamed returns the policies of the adapter of a name.
func policiesNamed(s *session, f socketFlag, name string) ([]api.QoSPolicy, error) {
	st, err := f.admin().Status(s.ctx)
	if err != nil {
		return nil, err
	}
	a, err := st.Adapter("adapter", name)
	if err != nil {
		return nil, err
	}
	if a.QoS == nil {
		return nil, fmt.Errorf("%w: adapter %q has no priorities", tool.ErrUnsupported, name)
	}
	return a.QoS.Policies, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/fabric/lan"
	"github.com/softvpi/softvpi/internal/fabric/state"
	"github.com/softvpi/softvpi/internal/link/cable"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// stationWaiting is how many bytes of a priority a host's end of a link keeps in advance, so that one that is paused does not
	// hold up others at once.
	stationWaiting = 64 << 10
	// stationBuffer is what it has for frames besides headroom.
	stationBuffer = 4 << 20
)

// network builds the Ethernet of a file, which tells of incidents; nil: it has none.
func (c fabricRunCmd) network(f *scenario.Fabric, tell func(state.Incident)) (*lan.Network, error) {
	if f == nil || f.Graph == nil {
		return nil, nil
	}
	random := rand.New(rand.NewPCG(c.Seed, 1))
	cfg := lan.Config{Timing: c.Timing, Random: random.Uint64, Tell: tell}
	for i := range f.Graph.Nodes {
		cfg.Nodes = append(cfg.Nodes, nodeOf(f, i, random.Uint64))
	}
	for _, l := range f.Graph.Links {
		cfg.Links = append(cfg.Links, lan.Link{A: ethernet.End{Node: l.A, Port: l.PortA}, B: ethernet.End{Node: l.B, Port: l.PortB}})
	}
	n, err := lan.New(0, cfg)
	var node *lan.NodeError
	if errors.As(err, &node) {
		return nil, tool.Usagef("%s: %v", f.File, node)
	}
	return n, err
}

// nodeOf returns a node as it is configured.
func nodeOf(f *scenario.Fabric, i int, random func() uint64) lan.Node {
	x := &f.Graph.Nodes[i]
	n := lan.Node{Name: x.Name}
	if x.Host {
		n.Station = stationOf(f, i)
		n.Own = n.Station.Wire.FlowControl != ethernet.NoFlowControl
		return n
	}
	c := f.Switches[i]
	n.Switch = ethernet.Config{MAC: eth.MAC{2, 0x73, 0x76, byte(i >> 16), byte(i >> 8), byte(i)}, Buffer: c.Buffer, Storm: c.Storm,
		Seed: f.Seed<<20 ^ uint64(i), Random: random}
	n.LLDP = lan.LLDP{On: c.LLDP, DCBX: c.DCBX, Protocol: c.Protocol, ETS: c.Weighted, Applications: c.Applications}
	for _, l := range x.Links {
		link := &f.Graph.Links[l]
		p := ethernet.PortConfig{Rate: link.Rate, Delay: link.Delay, MTU: cable.MostMTU, Trust: c.Trust, Default: c.Default,
			FlowControl: c.Flow, Lossless: c.Lossless, Quanta: c.Quanta, Groups: c.Groups, Queues: c.Queues,
			Limit: scenario.Limit(c.MTU, cable.MostMTU)}
		if peer, _ := link.Other(i); !f.Graph.Nodes[peer].Host {
			p.PVID, p.Tagged = bridge.DefaultVLAN, bridge.AllVLANs()
		}
		n.Ports = append(n.Ports, p)
	}
	n.Bundles = f.Bundles[i]
	for _, b := range n.Bundles {
		l := f.LACPOf(i, b)
		n.LACP = append(n.LACP, lan.LACP{On: l.On, Passive: l.Passive, Fast: l.Fast, Choice: l.Choice})
	}
	for _, own := range f.Ports {
		if own.Node == i {
			own.Adapt(&n.Ports[own.Port])
		}
	}
	return n
}

// stationOf returns the end of a host's link.
func stationOf(f *scenario.Fabric, i int) *ethernet.StationConfig {
	c := f.NICs[i]
	link := &f.Graph.Links[f.Graph.Nodes[i].Links[0]]
	w := ethernet.PortConfig{Rate: link.Rate, Delay: link.Delay, MTU: cable.MostMTU, Lossless: c.Lossless}
	w.Trust, w.Default = scenario.TrustOf(f.Graph, f.Switches, f.Ports, i)
	switch {
	case c.Pause:
		w.FlowControl = ethernet.GlobalPause
	case c.Lossless != 0:
		w.FlowControl = ethernet.PriorityPause
	}
	room := ethernet.Headroom(link.Rate, link.Delay, cable.MostMTU) + cable.MostMTU
	return &ethernet.StationConfig{Wire: w, Take: c.Take, Waiting: stationWaiting, Buffer: stationBuffer + ethernet.Priorities*room}
}

// told returns what takes incidents, without waiting, and what prints them until ctx ends.
func (s *session) told() (tell func(state.Incident), print func(ctx context.Context)) {
	const most = 64 // more at once are in the list of the command incidents alone
	waiting := make(chan state.Incident, most)
	tell = func(x state.Incident) {
		select {
		case waiting <- x:
		default:
		}
	}
	return tell, func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				return
			case x := <-waiting:
				fmt.Fprintf(s.env.Stdout, "incident     %s\n", x.String())
			}
		}
	}
}

// describe prints what a fabric consists of.
func (c fabricRunCmd) describe(s *session, net *lan.Network) {
	if net == nil {
		return
	}
	hosts, switches, links := net.Counts()
	fmt.Fprintf(s.env.Stdout, "ethernet     %d hosts, %d switches, %d links\n", hosts, switches, links)
}

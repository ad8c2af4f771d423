package main

import (
	"github.com/softvpi/softvpi/internal/api"
)

type overlayCmd struct {
	List   overlayListCmd   `cmd:"" help:"Show the records, routes and provider addresses of virtual subnets, and what adapters have counted."`
	Add    overlayAddCmd    `cmd:"" help:"Add a record, a route or a provider address, which stays until it is removed, also over restarts of the driver."`
	Remove overlayRemoveCmd `cmd:"" help:"Remove the entries of a kind that have all these settings; without any, all of the kind."`
}

// overlayEntry is what add and remove take.
type overlayEntry struct {
	Kind     string   `arg:"" enum:"record,route,address,provider-route" help:"record (where a customer address is), route (where a routing domain's packets go), address (of this host), provider-route (to other hosts)."`
	Settings []string `arg:"" optional:"" help:"Of a record: vsid= (4096 to 16777214), customer=, mac=, provider=, machine=. Of a route: domain=, vsid=, prefix=, via= (0.0.0.0: whoever packets are for), metric=. Of an address: adapter=, address= (with the length of its network), vlan=, encapsulation=vxlan|nvgre. Of a provider-route: adapter=, prefix=, via=, metric=."`
}

func (e *overlayEntry) request() api.OverlayRequest {
	return api.OverlayRequest{Kind: e.Kind, Settings: settingsOf(e.Settings)}
}

type overlayListCmd struct {
	showFlags `embed:""`
}

func (c overlayListCmd) Run(s *session) error {
	o, err := c.admin().Overlay(s.ctx)
	return show(s, c.JSON, &o, err)
}

type overlayAddCmd struct {
	showFlags    `embed:""`
	overlayEntry `embed:""`
}

func (c overlayAddCmd) Run(s *session) error {
	e, err := c.admin().AddOverlayEntry(s.ctx, c.request())
	return show(s, c.JSON, &e, err)
}

type overlayRemoveCmd struct {
	showFlags    `embed:""`
	overlayEntry `embed:""`
}

func (c overlayRemoveCmd) Run(s *session) error {
	list, err := c.admin().RemoveOverlayEntries(s.ctx, c.request())
	return showAll(s, c.JSON, list, err)
}

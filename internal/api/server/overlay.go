package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// OverlaySource is implemented by a driver with virtual subnets, and is then served.
type OverlaySource interface {
	Overlay() api.Overlay
	AddOverlayEntry(api.OverlayRequest) (api.OverlayEntry, error)
	// RemoveOverlayEntries removes those of the kind that have all the settings, and returns them; without settings all of the kind.
	RemoveOverlayEntries(api.OverlayRequest) ([]api.OverlayEntry, error)
}

func (s *Server) overlayRoutes(d OverlaySource) {
	register(s, operation("GET", api.OverlayURL, "overlay", "Virtual subnets: records, routes, provider addresses, counters"),
		func(context.Context, *struct{}) (*one[api.Overlay], error) { return body(d.Overlay()), nil })
	register(s, operation("POST", api.OverlayURL, "add-overlay-entry", "Add a record, a route or a provider address of virtual subnets"),
		func(_ context.Context, in *struct{ Body api.OverlayRequest }) (*one[api.OverlayEntry], error) {
			e, err := d.AddOverlayEntry(in.Body)
			return body(e), err
		})
	register(s, operation("POST", api.OverlayURL+"/remove", "remove-overlay-entries", "Remove the entries of a kind that have all these settings"),
		func(_ context.Context, in *struct{ Body api.OverlayRequest }) (*one[[]api.OverlayEntry], error) {
			list, err := d.RemoveOverlayEntries(in.Body)
			return body(list), err
		})
}

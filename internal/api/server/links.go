package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/api"
)

// pages is a driver that serves the device manager pages.
type pages interface {
	// MakeLink makes a link to the pages, which are served on the loopback interface from then on.
	MakeLink() (api.Link, error)
	// ClosePages ends the sessions and closes the port.
	ClosePages() error
}

func (s *Server) linkRoutes(d pages) {
	register(s, operation("POST", "/links", "make-link", "Make a link to the device manager pages"),
		func(context.Context, *struct{}) (*one[api.Link], error) {
			l, err := d.MakeLink()
			return body(l), err
		})
	register(s, operation("DELETE", "/links", "close-pages", "End the sessions of the device manager pages and close their port"),
		func(context.Context, *struct{}) (*struct{}, error) { return nil, d.ClosePages() })
}

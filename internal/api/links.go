package api

import (
	"context"
	"time"
)

// Link is a URL that opens a session of the device manager pages, once.
type Link struct {
	URL   string    `json:"url"`
	Until time.Time `json:"until" doc:"When it is void."`
}

// pages is a driver that serves the device manager pages.
type pages interface {
	// MakeLink makes a link to the pages, which are served on the loopback interface from then on.
	MakeLink() (Link, error)
	// ClosePages ends the sessions and closes the port.
	ClosePages() error
}

func (s *Server) linkRoutes(d pages) {
	register(s, operation("POST", "/links", "make-link", "Make a link to the device manager pages"),
		func(context.Context, *struct{}) (*one[Link], error) {
			l, err := d.MakeLink()
			return body(l), err
		})
	register(s, operation("DELETE", "/links", "close-pages", "End the sessions of the device manager pages and close their port"),
		func(context.Context, *struct{}) (*struct{}, error) { return nil, d.ClosePages() })
}

// Link creates a link to the device manager pages, which are then served on the loopback interface.
func (c *Client) Link(ctx context.Context) (l Link, err error) {
	err = c.call(ctx, "POST", "/links", nil, nil, &l)
	return l, err
}

// ClosePages ends the sessions of the device manager pages and closes their port.
func (c *Client) ClosePages(ctx context.Context) error {
	return c.call(ctx, "DELETE", "/links", nil, nil, nil)
}

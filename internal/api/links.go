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

// Link creates a link to the device manager pages, which are then served on the loopback interface.
func (c *Client) Link(ctx context.Context) (l Link, err error) {
	err = c.call(ctx, "POST", "/links", nil, nil, &l)
	return l, err
}

// ClosePages ends the sessions of the device manager pages and closes their port.
func (c *Client) ClosePages(ctx context.Context) error {
	return c.call(ctx, "DELETE", "/links", nil, nil, nil)
}

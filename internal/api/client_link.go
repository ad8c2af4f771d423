package api

import (
	"context"
	"time"
)

// Link opens a session of the device manager pages, once.
type Link struct {
	URL   string    `json:"url"`
	Until time.Time `json:"until"` // when it is void
}

// Link asks for a link to the device manager pages, which are served on the loopback interface from then on.
func (c *Client) Link(ctx context.Context) (l Link, err error) {
	err = c.call(ctx, "POST", "/links", nil, nil, &l)
	return l, err
}

// ClosePages ends the sessions of the device manager pages and closes their port.
func (c *Client) ClosePages(ctx context.Context) error {
	return c.call(ctx, "DELETE", "/links", nil, nil, nil)
}

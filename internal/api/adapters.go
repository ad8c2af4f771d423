package api

import (
	"context"
	"net/url"
)

// AdapterRequest enables or disables an adapter.
type AdapterRequest struct {
	Adapter string `json:"-"` // by name
	Enable  bool   `json:"enable" doc:"Whether programs can use the adapter. Disabling ends its connections."`
}

// SleepRequest puts the host of an adapter's Ethernet function to sleep, or wakes it.
type SleepRequest struct {
	Adapter  string   `json:"-"` // by name
	Sleep    bool     `json:"sleep" doc:"Whether the host sleeps: nothing is read from it, and frames for it are lost until one wakes it."`
	Patterns []string `json:"patterns,omitempty" doc:"Frames that wake it beside magic packets, such as 12:0806+38:c0000201: parts of OFFSET:HEX, all of which match."`
}

// LinkRequest sets what the link of an adapter does to packets, and the path that connections take. Nil
// leaves a setting unchanged.
type LinkRequest struct {
	Adapter    string    `json:"-"`
	Impairment *[]string `json:"impairment,omitempty" doc:"Words such as loss=1% delay=50us seed=7, on top of what is set; none clears."`
	Path       *string   `json:"path,omitempty" doc:"auto, wire, local or direct"`
}

// SetAdapter enables or disables an adapter.
func (c *Client) SetAdapter(ctx context.Context, q AdapterRequest) error {
	return c.call(ctx, "PUT", adapterURL(q.Adapter, "/state"), nil, q, nil)
}

// RestartAdapter disables and enables an adapter, which applies its current keys.
func (c *Client) RestartAdapter(ctx context.Context, name string) error {
	return c.call(ctx, "POST", adapterURL(name, "/restart"), nil, nil, nil)
}

// SleepAdapter puts the host of an adapter's Ethernet function to sleep, or wakes it.
func (c *Client) SleepAdapter(ctx context.Context, q SleepRequest) error {
	return c.call(ctx, "PUT", adapterURL(q.Adapter, "/sleep"), nil, q, nil)
}

// SetLink changes the link of an adapter.
func (c *Client) SetLink(ctx context.Context, q LinkRequest) error {
	return c.call(ctx, "PATCH", adapterURL(q.Adapter, "/link"), nil, q, nil)
}

func adapterURL(name, rest string) string { return "/adapters/" + url.PathEscape(name) + rest }

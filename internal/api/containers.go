package api

import (
	"context"
	"strconv"
)

// ContainerRequest changes what the programs of a container may make the driver hold together. Nil leaves a limit unchanged, and 0 is
// back to that of the driver's configuration.
type ContainerRequest struct {
	Number      int     `json:"-"` // from 0
	Memory      *uint64 `json:"memory,omitempty" doc:"Bytes."`
	Descriptors *uint32 `json:"descriptors,omitempty" doc:"File descriptors."`
}

// SetContainer changes the quota of a container.
func (c *Client) SetContainer(ctx context.Context, q ContainerRequest) error {
	return c.call(ctx, "PATCH", ContainersURL+"/"+strconv.Itoa(q.Number), nil, q, nil)
}

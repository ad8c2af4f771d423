package client

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// tagsMinor is the first minor version with shared receive queues that match tags.
const tagsMinor = 14

// CreateTagSRQ implements command.Extended's.
func (c *Client) CreateTagSRQ(ctx context.Context, q command.CreateTagSRQ) (command.Queue, error) {
	if c.minor() < tagsMinor {
		return command.Queue{}, c.older("tag matching", tagsMinor)
	}
	return ask[command.Queue](ctx, c, proto.OpCreateTagSRQ, q)
}

// TagOp implements command.Extended's.
func (c *Client) TagOp(ctx context.Context, q command.TagOp) (command.Handle, error) {
	if c.minor() < tagsMinor {
		return 0, c.older("tag matching", tagsMinor)
	}
	return ask[command.Handle](ctx, c, proto.OpTag, q)
}

package client

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// flowMinor is the minor version of the protocol that has raw packet queue pairs and their flows.
const flowMinor = 15

// CreateFlow implements command.Extended's.
func (c *Client) CreateFlow(ctx context.Context, q command.CreateFlow) (command.Handle, error) {
	if c.minor() < flowMinor {
		return 0, command.Errorf(command.Unsupported, "the driver knows no flows")
	}
	return ask[command.Handle](ctx, c, proto.OpCreateFlow, q)
}

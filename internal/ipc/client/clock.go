package client

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// timesMinor is the first minor version in which completion queues have flags and the clock of completions can be placed.
const timesMinor = 6

// Clock implements command.Extended's.
func (c *Client) Clock(ctx context.Context) (command.Clock, error) {
	if c.about.Minor < timesMinor {
		return command.Clock{}, c.older("the clock of completions")
	}
	return ask[command.Clock](ctx, c, proto.OpClock, proto.Empty{})
}

// older returns the error for what the driver's version of the protocol does not have.
func (c *Client) older(what string) error {
	return command.Errorf(command.Unsupported, "%s: the driver's version of the protocol is %d.%d, want %d.%d", what,
		c.about.Major, c.about.Minor, proto.Major, timesMinor)
}

package device

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
)

// Clock implements command.Extended.
func (c *Client) Clock(context.Context) (command.Clock, error) {
	return command.Clock{Zero: c.host.zero}, nil
}

package client

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// The first minor versions in which completion queues have flags and the clock of completions can be placed, in which queue
// pairs have other flags than QPSignalAll, and in which they have atomic writes and flushes.
const (
	timesMinor   = 6
	qpFlagsMinor = 11
	placedMinor  = 13
)

// Clock implements command.Extended's.
func (c *Client) Clock(ctx context.Context) (command.Clock, error) {
	if c.about.Minor < timesMinor {
		return command.Clock{}, c.older("the clock of completions", timesMinor)
	}
	return ask[command.Clock](ctx, c, proto.OpClock, proto.Empty{})
}

// linksMinor is the first minor version that tells link-layer addresses.
const linksMinor = 12

// LinkAddresses implements command.Extended's. An older driver has none to tell.
func (c *Client) LinkAddresses(ctx context.Context, adapter uint32) ([]command.LinkAddress, error) {
	if c.about.Minor < linksMinor {
		return nil, nil
	}
	return askList[command.LinkAddress](ctx, c, proto.OpLinkAddresses, proto.AdapterArgs{Adapter: adapter})
}

// firmwareMinor is the first minor version that tells what devices run.
const firmwareMinor = 22

// Firmware implements command.Extended's. An older driver does not tell, and the answer is empty.
func (c *Client) Firmware(ctx context.Context, adapter uint32) (command.Firmware, error) {
	if c.about.Minor < firmwareMinor {
		return command.Firmware{}, nil
	}
	return ask[command.Firmware](ctx, c, proto.OpFirmware, proto.AdapterArgs{Adapter: adapter})
}

// Places reports whether the driver has atomic writes and flushes.
func (c *Client) Places() bool { return c.about.Minor >= placedMinor }

// older returns the error for what the driver's version of the protocol does not have.
func (c *Client) older(what string, minor uint16) error {
	return command.Errorf(command.Unsupported, "%s: the driver's version of the protocol is %d.%d, want %d.%d", what,
		c.about.Major, c.about.Minor, proto.Major, minor)
}

package client

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// The minor versions of the protocol that have raw packet queue pairs and their flows, that tell of ports and flows,
// that spread frames, and that have flags for what is received.
const (
	flowMinor      = 15
	framePortMinor = 17
	rssMinor       = 18
	flagsMinor     = 19
)

// limitMinor is the minor version that has rates of queue pairs.
const limitMinor = 20

// staticRateMinor is the minor version that has static rates of address vectors.
const staticRateMinor = 21

// LimitQP implements command.Extended's.
func (c *Client) LimitQP(ctx context.Context, q command.LimitQP) error {
	if c.minor() < limitMinor {
		return c.older("rates of queue pairs", limitMinor)
	}
	return tell(ctx, c, proto.OpLimitQP, q)
}

// CreateRSS implements command.Extended's.
func (c *Client) CreateRSS(ctx context.Context, q command.CreateRSS) (command.Handle, error) {
	if c.minor() < rssMinor {
		return 0, c.older("receive-side scaling", rssMinor)
	}
	return ask[command.Handle](ctx, c, proto.OpCreateRSS, q)
}

// CreateFlow implements command.Extended's.
func (c *Client) CreateFlow(ctx context.Context, q command.CreateFlow) (command.Handle, error) {
	if c.minor() < flowMinor {
		return 0, command.Errorf(command.Unsupported, "the driver knows no flows")
	}
	return ask[command.Handle](ctx, c, proto.OpCreateFlow, q)
}

// SetRSS implements command.Extended's.
func (c *Client) SetRSS(ctx context.Context, q command.SetRSS) error {
	if c.minor() < flagsMinor {
		return c.older("other tables of receive-side scaling", flagsMinor)
	}
	return tell(ctx, c, proto.OpSetRSS, q)
}

// SetFrameFlags implements command.Extended's.
func (c *Client) SetFrameFlags(ctx context.Context, q command.SetFrameFlags) error {
	if c.minor() < flagsMinor {
		return c.older("flags of raw packet QPs", flagsMinor)
	}
	return tell(ctx, c, proto.OpSetFrameFlags, q)
}

// FlowCounters implements command.Extended's.
func (c *Client) FlowCounters(ctx context.Context, flow command.Handle) (command.FlowCounters, error) {
	if c.minor() < framePortMinor {
		return command.FlowCounters{}, c.older("counters of flows", framePortMinor)
	}
	return ask[command.FlowCounters](ctx, c, proto.OpFlowCounters, proto.HandleArgs{Handle: flow})
}

// FramePort implements command.Extended's.
func (c *Client) FramePort(ctx context.Context, adapter uint32) (command.FramePort, error) {
	if c.minor() < framePortMinor {
		return command.FramePort{}, c.older("ports of whole frames", framePortMinor)
	}
	return ask[command.FramePort](ctx, c, proto.OpFramePort, proto.AdapterArgs{Adapter: adapter})
}

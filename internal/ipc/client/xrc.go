package client

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// xrcMinor is the minor version of the protocol that has extended reliable connections.
const xrcMinor = 9

// ibSpaceMinor is the one that has the IB port space, in which they are connected.
const ibSpaceMinor = 10

// askXRC is ask for operations that drivers of earlier versions take for a broken frame.
func askXRC[R, Q any](ctx context.Context, c *Client, op proto.Opcode, q Q) (r R, err error) {
	if c.minor() < xrcMinor {
		return r, command.Errorf(command.Unsupported, "the driver knows no extended reliable connections")
	}
	return ask[R](ctx, c, op, q)
}

// OpenXRCD implements command.Extended's.
func (c *Client) OpenXRCD(ctx context.Context, q command.OpenXRCD) (command.Handle, error) {
	return askXRC[command.Handle](ctx, c, proto.OpOpenXRCD, q)
}

// CreateXRCSRQ implements command.Extended's.
func (c *Client) CreateXRCSRQ(ctx context.Context, q command.CreateXRCSRQ) (command.Queue, error) {
	return askXRC[command.Queue](ctx, c, proto.OpCreateXRCSRQ, q)
}

// OpenQP implements command.Extended's.
func (c *Client) OpenQP(ctx context.Context, q command.OpenQP) (command.QueuePair, error) {
	return askXRC[command.QueuePair](ctx, c, proto.OpOpenQP, q)
}

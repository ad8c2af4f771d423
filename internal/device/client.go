package device

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
)

// Client is a program that uses the adapters. Its methods are safe for
// concurrent use.
type Client struct {
	host *Host
	cfg  ClientConfig
}

var _ command.Commands = (*Client)(nil)

// Doorbell says that work was posted on a QP. Where the loop is free it runs
// here and now; otherwise its owner sees the doorbell before it lets go.
func (c *Client) Doorbell(qp command.Handle) {}

// Poll drives the loop once where it is free, and reports whether anything was
// done. A program that polls its completion queues calls it between looks.
func (c *Client) Poll() bool { return false }

// WaitCQ waits until the event sequence of the CQ's ring is not seq, and returns
// what it is then. To lose no event: read the sequence, arm the ring, poll it
// once more, and only then wait. The error is ctx's, NotFound when the CQ is
// destroyed, or Removed when the adapter is disabled.
func (c *Client) WaitCQ(ctx context.Context, cq command.Handle, seq uint32) (uint32, error) {
	return 0, command.Errorf(command.Unsupported, "not built yet")
}

// Arena returns the memory of ring arena id; nil where there is none. Arena 0
// exists from the start and begins with the doorbell queue.
func (c *Client) Arena(id uint32) []byte { return nil }

// Close destroys everything that the client made: QPs go to error and are
// flushed, peers get a DREQ, and the numbers of the QPs wait before they are used again.
func (c *Client) Close() error { return nil }

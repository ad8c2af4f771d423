package api

import (
	"context"
	"errors"
	"net"

	"github.com/softvpi/softvpi/internal/os/peer"
)

// errUnknownProcess is a driver of which the system does not tell the process, or that is not among those that this
// process sees, as in another container.
var errUnknownProcess = errors.New("the driver's process is not visible from here")

// Process is the driver's process: the one that serves the socket, by the system's word and not the driver's. Errors are ErrNotRunning,
// errUnknownProcess and others.
func (c *Client) Process(ctx context.Context) (pid int, err error) {
	if c.dial == nil {
		return 0, errUnknownProcess
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return 0, c.explain(err)
	}
	defer conn.Close()
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, errUnknownProcess
	}
	p, err := peer.Of(u)
	if err != nil {
		return 0, err
	}
	if p.PID == 0 {
		return 0, errUnknownProcess
	}
	return p.PID, nil
}

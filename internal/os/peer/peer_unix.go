//go:build linux || darwin

package peer

import (
	"cmp"
	"fmt"
	"net"
)

// Of asks the system who is at the other end of a connection: the process that connected, with the
// credentials that it had then.
func Of(c *net.UnixConn) (p Process, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Process{}, err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { p, inner = credentials(int(fd)) })
	if err := cmp.Or(err, inner); err != nil {
		return Process{}, fmt.Errorf("credentials of the peer: %w", err)
	}
	return p, nil
}

//go:build linux || darwin

package api

import (
	"cmp"
	"net"
)

// peerOf asks the system who is at the other end.
func peerOf(c *net.UnixConn) (p peer, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{}, err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { p, inner = credentials(int(fd)) })
	return p, cmp.Or(err, inner)
}

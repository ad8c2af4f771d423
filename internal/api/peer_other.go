//go:build !linux && !darwin

package api

import (
	"net"
	"os"
)

// peerOf is this user: the system tells nothing of the peer, and the permissions of the socket let only the
// driver's own user to it.
func peerOf(*net.UnixConn) (peer, error) { return peer{uid: os.Geteuid()}, nil }

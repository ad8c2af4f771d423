//go:build !linux

package server

import (
	"errors"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
)

// Server is implemented on Linux only.
type Server struct{}

// errPlatform says that the management service is not available on this system.
var errPlatform = errors.New("the service of management datagrams needs sockets and files that only Linux has")

// Listen is implemented on Linux only.
func Listen(string, Host) (*Server, error) { return nil, errPlatform }

// Path returns "".
func (*Server) Path() string { return "" }

// Close does nothing.
func (*Server) Close() error { return nil }

// Take takes nothing.
func (*Server) Take(clock.Time, fabric.Place, *fabric.Packet) bool { return false }

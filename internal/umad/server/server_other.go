//go:build !linux

package server

import (
	"errors"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
)

// Server is there on Linux only.
type Server struct{}

// errPlatform is a system that has no service of management datagrams.
var errPlatform = errors.New("the service of management datagrams needs sockets and files that Linux alone has")

// Listen is there on Linux only.
func Listen(string, Host) (*Server, error) { return nil, errPlatform }

// Path is empty.
func (*Server) Path() string { return "" }

// Close does nothing.
func (*Server) Close() error { return nil }

// Take takes nothing.
func (*Server) Take(clock.Time, fabric.Place, *fabric.Packet) bool { return false }

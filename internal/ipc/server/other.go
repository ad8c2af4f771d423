//go:build !linux

package server

import (
	"context"
	"net"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// Server attaches programs; it does not exist on this system.
type Server struct{}

// New returns proto.ErrPlatform.
func New(Host, Config) (*Server, error) { return nil, proto.ErrPlatform }

// Serve returns proto.ErrPlatform.
func (s *Server) Serve(context.Context, *net.UnixListener) error { return proto.ErrPlatform }

// ServeContainer returns proto.ErrPlatform.
func (s *Server) ServeContainer(context.Context, *net.UnixListener, Container) error {
	return proto.ErrPlatform
}

// Clients returns 0.
func (s *Server) Clients() int { return 0 }

// Ledger returns nil.
func (s *Server) Ledger() *budget.Ledger { return nil }

// Close does nothing.
func (s *Server) Close() error { return nil }

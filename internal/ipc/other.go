//go:build !linux

package ipc

import (
	"context"
	"net"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/direct"
)

// Client is a program's side of an attachment; there is none on this system.
type Client struct {
	calls  *calls
	events *eventQueue
	words  words

	introduced introduced
	tracks     tracks
}

type (
	words      struct{}
	introduced struct{}
	tracks     struct{ turn chan struct{} }
)

func (words) set(*Client, command.Queue) error { return ErrPlatform }
func (words) drop(command.Handle)              {}

func (introduced) forget(command.Handle) {}

func (*tracks) enter()                    {}
func (*tracks) leave(*Client)             {}
func (*tracks) lead(*Client, func() bool) {}

func (c *Client) send(opcode, uint64, []byte) error { return ErrPlatform }

// Dial returns ErrPlatform.
func Dial(context.Context, string, Options) (*Client, error) { return nil, ErrPlatform }

// Doorbell says that work was posted on a QP or SRQ.
func (c *Client) Doorbell(command.Handle) {}

// Direct returns where the initiator of a QP would stand.
func (c *Client) Direct(command.Handle, uint32) *direct.Slot { return nil }

// Poll gives the driver the processor.
func (c *Client) Poll(uint32) bool { return false }

// Spins is part of the interface of a program's adapters.
func (c *Client) Spins() int { return 64 }

// Arena returns the memory of ring arena id.
func (c *Client) Arena(uint32) []byte { return nil }

// WaitCQ waits for an event of a CQ.
func (c *Client) WaitCQ(context.Context, command.Handle, uint32) (uint32, error) {
	return 0, ErrPlatform
}

// MemoryPath is how the driver reaches memory outside of segments.
func (c *Client) MemoryPath() uint32 { return 0 }

// Driver returns the driver's name and process id.
func (c *Client) Driver() (string, int) { return "", 0 }

// AllocSegment makes memory that the driver maps too.
func (c *Client) AllocSegment(context.Context, uint64) (uint32, []byte, error) {
	return 0, nil, ErrPlatform
}

// FreeSegment gives a segment back.
func (c *Client) FreeSegment(uint32) error { return ErrPlatform }

// Close detaches.
func (c *Client) Close() error { return nil }

// Server attaches programs; there is none on this system.
type Server struct{}

// NewServer returns ErrPlatform.
func NewServer(Host, ServerConfig) (*Server, error) { return nil, ErrPlatform }

// Serve returns ErrPlatform.
func (s *Server) Serve(context.Context, *net.UnixListener) error { return ErrPlatform }

// Clients returns the number of programs attached.
func (s *Server) Clients() int { return 0 }

// Close ends the server.
func (s *Server) Close() error { return nil }

// Release closes the descriptors that the Host's loop slept on.
func (s *Server) Release() {}

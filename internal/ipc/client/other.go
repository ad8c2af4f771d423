//go:build !linux

package client

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// Client is a program's side of an attachment; it does not exist on this system.
type Client struct {
	about  proto.Welcome
	calls  *calls
	events *eventQueue
	words  words

	introduced introduced
	gathering  gatherer
	tracks     tracks
}

type (
	words      struct{}
	introduced struct{}
	tracks     struct{}
)

func (words) set(*Client, command.Queue) error { return proto.ErrPlatform }
func (words) drop(command.Handle)              {}

func (introduced) forget(command.Handle) {}

func (*tracks) enter()                    {}
func (*tracks) leave(*Client)             {}
func (*tracks) poll(*Client, func() bool) {}
func (*tracks) offered() <-chan struct{}  { return nil }

func (c *Client) send(proto.Opcode, uint64, []byte) error { return proto.ErrPlatform }

// Dial returns proto.ErrPlatform.
func Dial(context.Context, string, Options) (*Client, error) { return nil, proto.ErrPlatform }

// Doorbell does nothing.
func (c *Client) Doorbell(command.Handle) {}

// Direct returns nil.
func (c *Client) Direct(command.Handle, uint32) *direct.Slot { return nil }

// Poll returns false.
func (c *Client) Poll(uint32) bool { return false }

// Spins is part of the interface of a program's adapters.
func (c *Client) Spins() int { return 1 }

// Arena returns nil.
func (c *Client) Arena(uint32) []byte { return nil }

// SleepCQ returns proto.ErrPlatform.
func (c *Client) SleepCQ(context.Context, command.Handle, uint32) (uint32, error) {
	return 0, proto.ErrPlatform
}

// RouseCQ does nothing.
func (c *Client) RouseCQ(command.Handle) {}

// WaitCQ returns proto.ErrPlatform.
func (c *Client) WaitCQ(context.Context, command.Handle, uint32) (uint32, error) {
	return 0, proto.ErrPlatform
}

// MemoryPath returns 0.
func (c *Client) MemoryPath() command.MemoryPath { return 0 }

func (c *Client) minor() uint16 { return 0 }

// Driver returns zero values.
func (c *Client) Driver() (string, int) { return "", 0 }

// AllocSegment returns proto.ErrPlatform.
func (c *Client) AllocSegment(context.Context, uint64) (uint32, []byte, error) {
	return 0, nil, proto.ErrPlatform
}

// FreeSegment returns proto.ErrPlatform.
func (c *Client) FreeSegment(uint32) error { return proto.ErrPlatform }

// Close does nothing.
func (c *Client) Close() error { return nil }

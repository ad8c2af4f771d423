package client

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// Relay sends a request with a body that somebody else has made, who is to understand the answer's: the driver checks it. Whoever receives
// the answer passes it to then, which must not wait for the driver. If Relay returns an error, nothing was begun.
func (c *Client) Relay(ctx context.Context, op proto.Opcode, body []byte, then func(body []byte, err error)) error {
	return c.begin(ctx, op, body, func(r reply) {
		for _, fd := range r.fds {
			unix.Close(fd)
		}
		then(r.body, r.err)
	})
}

// OpenChannel creates a channel, and returns the end from which its messages are read, which the caller closes.
func (c *Client) OpenChannel(ctx context.Context, q command.CreateChannel) (command.Handle, *os.File, error) {
	r, err := c.call(ctx, proto.OpCreateChannel, proto.Encode(q))
	if err != nil {
		return 0, nil, err
	}
	a, err := proto.Decode[proto.HandleArgs](r.body)
	if err != nil || len(r.fds) != 1 {
		for _, fd := range r.fds {
			unix.Close(fd)
		}
		return 0, nil, command.Errorf(command.Internal, "the driver's answer: %d descriptors", len(r.fds))
	}
	_ = unix.SetNonblock(r.fds[0], true) // so that closing it ends who reads
	return a.Handle, os.NewFile(uintptr(r.fds[0]), "softvpi-channel"), nil
}

// Arenas returns the ring arenas that the driver has passed so far, by their numbers.
func (c *Client) Arenas() [][]byte { return *c.arenas.Load() }

// Doorbells returns the number of entries of the doorbell queue.
func (c *Client) Doorbells() int { return int(c.about.Doorbells) }

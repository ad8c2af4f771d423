package client

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/shared"
)

// AllocDM allocates device memory and maps it.
func (c *Client) AllocDM(ctx context.Context, q command.AllocDM) (command.DeviceMemory, []byte, error) {
	r, err := c.call(ctx, proto.OpAllocDM, proto.Encode(q))
	for _, fd := range r.fds {
		defer unix.Close(fd)
	}
	if err != nil {
		return command.DeviceMemory{}, nil, err
	}
	d, err := proto.Decode[command.DeviceMemory](r.body)
	if err != nil || len(r.fds) != 1 || d.Size < q.Size {
		return command.DeviceMemory{}, nil, command.Errorf(command.Internal, "the driver's answer: %d descriptors, %d bytes", len(r.fds), d.Size)
	}
	mem, err := shared.Map(r.fds[0], d.Size)
	if err != nil {
		_ = c.Destroy(context.WithoutCancel(ctx), command.KindDM, d.Handle)
		return command.DeviceMemory{}, nil, command.Errorf(command.Exhausted, "device memory of %d bytes: %v", d.Size, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = unix.Munmap(mem)
		return command.DeviceMemory{}, nil, errClosed
	}
	c.segments[d.Segment] = mem
	return d, mem, nil
}

// FreeDM frees device memory, which must not be used any more.
func (c *Client) FreeDM(ctx context.Context, d command.DeviceMemory) error {
	if err := c.Destroy(ctx, command.KindDM, d.Handle); err != nil {
		return err
	}
	c.mu.Lock()
	mem := c.segments[d.Segment]
	delete(c.segments, d.Segment)
	c.mu.Unlock()
	if mem != nil {
		_ = unix.Munmap(mem)
	}
	return nil
}

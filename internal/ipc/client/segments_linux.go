package client

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/shared"
)

// AllocSegment allocates size bytes of memory shared with the driver, and returns the segment's number for
// command.RegisterMemory. The driver limits the total.
func (c *Client) AllocSegment(ctx context.Context, size uint64) (uint32, []byte, error) {
	r, err := c.call(ctx, proto.OpAllocSegment, proto.Encode(proto.SegmentArgs{Size: size}))
	for _, fd := range r.fds {
		defer unix.Close(fd)
	}
	if err != nil {
		return 0, nil, err
	}
	s, err := proto.Decode[proto.SegmentReply](r.body)
	if err != nil || len(r.fds) != 1 || s.Size < size {
		return 0, nil, command.Errorf(command.Internal, "the driver's answer: %d descriptors, %d bytes", len(r.fds), s.Size)
	}
	mem, err := shared.Map(r.fds[0], size)
	if err != nil {
		_ = tell(context.WithoutCancel(ctx), c, proto.OpFreeSegment, proto.HandleArgs{Handle: command.Handle(s.Number)})
		return 0, nil, command.Errorf(command.Exhausted, "segment of %d bytes: %v", size, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = unix.Munmap(mem)
		return 0, nil, errClosed
	}
	c.segments[s.Number] = mem
	return s.Number, mem, nil
}

// FreeSegment unmaps a segment here at once, and in the driver when it contains no region any more.
func (c *Client) FreeSegment(id uint32) error {
	c.mu.Lock()
	mem := c.segments[id]
	delete(c.segments, id)
	c.mu.Unlock()
	if mem == nil {
		return command.Errorf(command.NotFound, "segment %d", id)
	}
	err := unix.Munmap(mem)
	if e := c.freeSegment(id); e != nil {
		return e
	}
	if err != nil {
		return command.Errorf(command.Internal, "munmap: %v", err)
	}
	return nil
}

func (c *Client) freeSegment(id uint32) error {
	_, err := c.call(context.Background(), proto.OpFreeSegment, proto.Encode(proto.HandleArgs{Handle: command.Handle(id)}))
	return err
}

package client

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/ipc/stream"
)

// descriptor takes the single descriptor that comes with a frame, which the caller closes. what names it
// in errors.
func (c *Client) descriptor(h proto.Header, what string) (int, error) {
	fds, err := c.in.Take(h.FDs())
	if err != nil {
		return -1, err
	}
	if len(fds) == 1 {
		return fds[0], nil
	}
	stream.CloseAll(fds)
	return -1, fmt.Errorf("%w: %s with %d descriptors", proto.ErrFrame, what, len(fds))
}

// arena maps an arena that the driver passed.
func (c *Client) arena(h proto.Header, body []byte) error {
	b, err := proto.Decode[proto.ArenaBody](body)
	if err != nil {
		return err
	}
	fd, err := c.descriptor(h, "arena")
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	old := *c.arenas.Load()
	if int(b.ID) != len(old) {
		return fmt.Errorf("%w: arena %d after %d arenas", proto.ErrFrame, b.ID, len(old))
	}
	mem, err := shared.Map(fd, b.Size)
	if err != nil {
		return err
	}
	list := append(slices.Clone(old), mem)
	c.arenas.Store(&list)
	return nil
}

// read handles the driver's frames until the stream ends.
func (c *Client) read() {
	defer c.workers.Done()
	var buf []byte
	for {
		h, body, err := proto.ReadFrame(c.in, &buf, proto.MaxFrame)
		if err == nil && h.Op != proto.OpWakeUp {
			err = c.frame(h, body)
			c.tracks.taken.Add(1)
		}
		if err == nil {
			err = c.wokenUp()
		}
		if err != nil {
			c.fail(removed(err))
			return
		}
	}
}

func (c *Client) frame(h proto.Header, body []byte) error {
	switch {
	case h.Op == proto.OpEvents:
		return c.pushed(body)
	case h.Op == proto.OpArena:
		return c.arena(h, body)
	case h.Op == proto.OpShare, h.Op == proto.OpIntroduce, h.Op == proto.OpDrop, h.Op == proto.OpProcess:
		defer c.news.Take()
		return c.neighbours(h, body)
	case h.Op == proto.OpGoodbye:
		return farewell(body)
	}
	r := reply{body: slices.Clone(body)}
	var err error
	if r.fds, err = c.in.Take(h.FDs()); err != nil {
		return err
	}
	if h.Flags&proto.FlagError != 0 {
		r.err = proto.DecodeError(r.body)
	}
	if h.Flags&proto.FlagResponse != 0 {
		if a, ok := c.calls.answered(h.ID); ok {
			a.tell(r)
			return nil
		}
	}
	for _, fd := range r.fds { // nobody waits any more, or pushed by a later minor version
		unix.Close(fd)
	}
	return nil
}

// pushed handles events. It must not wait for the driver, which may be waiting for this program to take
// frames.
func (c *Client) pushed(body []byte) error {
	list, err := proto.DecodeList[command.Event](body)
	if err != nil {
		return err
	}
	free, err := c.events.push(list)
	if free > 0 {
		grant := proto.Encode(proto.Credit{Events: uint32(free)})
		if !c.out.Offer(proto.OpCredit, grant) {
			go func() { _ = c.send(proto.OpCredit, 0, grant) }()
		}
	}
	return err
}

// neighbours handles messages about other programs.
func (c *Client) neighbours(h proto.Header, body []byte) error {
	switch h.Op {
	case proto.OpShare:
		return c.shared(h, body)
	case proto.OpIntroduce:
		return c.introduce(body)
	case proto.OpProcess:
		return c.process(body)
	default:
		return c.drop(body)
	}
}

// farewell returns the error with which the driver ends the stream.
func farewell(body []byte) error {
	g, err := proto.Decode[proto.Goodbye](body)
	if err != nil {
		return err
	}
	n := min(int(g.Length), len(g.Reason))
	return command.Errorf(command.Removed, "the driver disconnected this program: %s", g.Reason[:n])
}

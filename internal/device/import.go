package device

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
)

// Self returns c: of a session that wraps a Client, the Client.
func (c *Client) Self() *Client { return c }

// ImportPD gives the program a handle of its own for another program's domain. The domain is the same for queue pairs and
// regions, and lasts until both have destroyed it.
func (c *Client) ImportPD(ctx context.Context, from *Client, h command.Handle) (command.Handle, error) {
	if err := c.enter(ctx); err != nil {
		return 0, err
	}
	defer c.host.unlock()
	p, err := from.domain(h)
	if err != nil {
		return 0, err
	}
	a := p.adapter
	if err := c.room(a, "PD", a.objects.PD, a.limits.PD); err != nil {
		return 0, err
	}
	own := &pd{adapter: a, number: p.number}
	if own.handle, err = c.pds.Add(own); err != nil {
		return 0, err
	}
	a.objects.PD++
	return own.handle, nil
}

// ImportMemory tells the program the keys of a region of another program, whose domain it has as h. The region ends with
// the other program, or when that destroys it.
func (c *Client) ImportMemory(ctx context.Context, from *Client, region, h command.Handle) (command.Memory, error) {
	if err := c.enter(ctx); err != nil {
		return command.Memory{}, err
	}
	defer c.host.unlock()
	p, err := c.domain(h)
	if err != nil {
		return command.Memory{}, err
	}
	m := from.mrs.Get(region)
	if m == nil || m.ending || m.region == nil {
		return command.Memory{}, notFound("memory region", region)
	}
	if p.adapter != m.pd.adapter || p.number != m.pd.number {
		return command.Memory{}, command.Errorf(command.Invalid, "PD %#x is not the domain of memory region %#x", uint32(h), uint32(region))
	}
	return command.Memory{LKey: m.region.Key, RKey: m.region.Key}, nil
}

// ImportDM gives the program a handle of its own for another program's device memory. place passes it on: it is called
// without the loop lock with the segment that has it in the other program, and returns what it is in this one.
func (c *Client) ImportDM(ctx context.Context, from *Client, h command.Handle,
	place func(segment uint32) (own uint32, release func(), err error)) (command.DeviceMemory, error) {
	there, err := c.foreignDM(ctx, from, h)
	if err != nil {
		return command.DeviceMemory{}, err
	}
	segment, release, err := place(there.segment)
	if err != nil {
		return command.DeviceMemory{}, asError(err)
	}
	d := &dm{adapter: there.adapter, size: there.size, segment: segment, release: release, imported: true}
	if err = c.enter(ctx); err == nil {
		d.handle, err = c.dms.Add(d)
		c.host.unlock()
	}
	if err != nil {
		release()
		return command.DeviceMemory{}, err
	}
	return command.DeviceMemory{Handle: d.handle, Segment: segment, Size: d.size}, nil
}

func (c *Client) foreignDM(ctx context.Context, from *Client, h command.Handle) (dm, error) {
	if err := c.enter(ctx); err != nil {
		return dm{}, err
	}
	defer c.host.unlock()
	d := from.dms.Get(h)
	if d == nil || d.segment == 0 {
		return dm{}, notFound("device memory", h)
	}
	return *d, c.room(d.adapter, "device memory", 0, 1)
}

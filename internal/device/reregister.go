package device

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
)

// ReregisterMemory implements command.Extended (IBA 11.2.8.7). Whoever is using the region as it was finds
// it gone, as after Destroy.
func (c *Client) ReregisterMemory(ctx context.Context, r command.ReregisterMemory) (command.Memory, error) {
	if err := checkIOVA(&r.RegisterMemoryAt); err != nil {
		return command.Memory{}, err
	}
	got, err := c.reach(&r.RegisterMemory)
	if err != nil {
		return command.Memory{}, err
	}
	m, release, err := c.reregister(ctx, &r, got)
	if err != nil {
		release = got.Release
	}
	if release != nil {
		release()
	}
	return m, err
}

// reregister changes a region. release, if not nil, frees what it was before.
func (c *Client) reregister(ctx context.Context, r *command.ReregisterMemory, got Reached) (_ command.Memory, release func(), _ error) {
	if err := c.enter(ctx); err != nil {
		return command.Memory{}, nil, err
	}
	defer c.host.unlock()
	m := c.mrs.Get(r.Memory)
	if m == nil || m.ending {
		return command.Memory{}, nil, notFound("memory region", r.Memory)
	}
	if m.dm != nil || c.dmAt(r.Segment) != nil {
		return command.Memory{}, nil, command.Errorf(command.Invalid, "a region of device memory stays as it is")
	}
	p, err := c.domain(r.PD)
	if err != nil {
		return command.Memory{}, nil, err
	}
	if p.adapter != m.pd.adapter {
		return command.Memory{}, nil, command.Errorf(command.Invalid, "PD is of adapter %q, want %q, the region's", p.adapter.name,
			m.pd.adapter.name)
	}
	want, err := p.describe(&r.RegisterMemory, &r.IOVA, got)
	if err != nil {
		return command.Memory{}, nil, err
	}
	p.uses++ // it must not go while the loop lock is released
	defer func() { p.uses-- }()
	if err := c.retire(m); err != nil {
		return command.Memory{}, nil, err
	}
	if m.region == nil {
		return command.Memory{}, nil, command.Errorf(command.Removed, "the region went with adapter %q, which was disabled", p.adapter.name)
	}
	was := m.region.Bytes
	region, err := p.adapter.memory.Replace(m.region.Key, want)
	if err != nil {
		c.export(m) // it stays as it was
		return command.Memory{}, nil, asError(err)
	}
	p.adapter.disown(was)
	m.pd.uses--
	p.uses++
	release = m.release
	m.pd, m.region, m.release, m.segment, m.offset = p, region, got.Release, r.Segment, r.SegmentOffset
	c.export(m)
	return m.answer(got), release, nil
}

package device

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
)

// dm is device memory of an adapter.
type dm struct {
	handle  command.Handle
	adapter *adapter
	size    uint64
	segment uint32 // that it lies in, 0 in memory of this process
	uses    int    // regions in it
	release func() // frees the segment
	// imported: another program has allocated it.
	imported bool
}

// dmPage is what sizes of device memory are rounded up to.
const dmPage = 4096

// MemoryInfo returns how much device memory an adapter has.
func (c *Client) MemoryInfo(ctx context.Context, index uint32) (command.MemoryInfo, error) {
	if err := c.enter(ctx); err != nil {
		return command.MemoryInfo{}, err
	}
	defer c.host.unlock()
	a, err := c.adapter(index)
	if err != nil {
		return command.MemoryInfo{}, err
	}
	return command.MemoryInfo{Size: a.limits.DM, Free: a.limits.DM - a.dmTaken}, nil
}

// AllocDM allocates device memory for a program in this process, which frees it with Destroy.
func (c *Client) AllocDM(ctx context.Context, q command.AllocDM) (command.DeviceMemory, []byte, error) {
	var mem []byte
	d, err := c.PlaceDM(ctx, q, func(size uint64) (uint32, func(), error) {
		b, err := privateArena(0, int(size))
		mem = b
		return 0, nil, err
	})
	return d, mem[:min(uint64(len(mem)), q.Size)], err
}

// FreeDM frees what AllocDM has allocated.
func (c *Client) FreeDM(ctx context.Context, d command.DeviceMemory) error {
	return c.Destroy(ctx, command.KindDM, d.Handle)
}

// PlaceDM allocates device memory in a segment that place makes, and release frees. It is called without the loop
// lock, once it is certain that the adapter has as much left. Errors are Invalid, Exhausted, and those of place.
func (c *Client) PlaceDM(ctx context.Context, q command.AllocDM,
	place func(size uint64) (segment uint32, release func(), err error)) (command.DeviceMemory, error) {
	d, err := c.reserveDM(ctx, q)
	if err != nil {
		return command.DeviceMemory{}, err
	}
	segment, release, err := place(d.size)
	if err != nil {
		_ = c.Destroy(context.WithoutCancel(ctx), command.KindDM, d.handle)
		return command.DeviceMemory{}, asError(err)
	}
	c.host.lock()
	gone := c.dms.Get(d.handle) != d // the program has ended meanwhile
	d.segment, d.release = segment, release
	c.host.unlock()
	if gone {
		if release != nil {
			release()
		}
		return command.DeviceMemory{}, command.Errorf(command.Canceled, "the client is closed")
	}
	return command.DeviceMemory{Handle: d.handle, Segment: segment, Size: d.size}, nil
}

// reserveDM takes device memory from an adapter.
func (c *Client) reserveDM(ctx context.Context, q command.AllocDM) (*dm, error) {
	a, err := c.begin(ctx, q.Adapter)
	if err != nil {
		return nil, err
	}
	defer c.host.unlock()
	if q.Size == 0 || q.Size > a.limits.DM {
		return nil, command.Errorf(command.Invalid, "Size is %d, want 1 to %d", q.Size, a.limits.DM)
	}
	d := &dm{adapter: a, size: (q.Size + dmPage - 1) &^ (dmPage - 1)}
	if left := a.limits.DM - a.dmTaken; d.size > left {
		return nil, command.Errorf(command.Exhausted, "device memory: %d bytes of %d are left", left, a.limits.DM)
	}
	if err := c.room(a, "device memory", 0, 1); err != nil {
		return nil, err
	}
	if d.handle, err = c.dms.Add(d); err != nil {
		return nil, err
	}
	a.dmTaken += d.size
	return d, nil
}

// dmAt returns the device memory in a segment; nil: it is none.
func (c *Client) dmAt(segment uint32) (found *dm) {
	if segment == 0 || c.dms.Live() == 0 {
		return nil
	}
	c.dms.Each(func(d *dm) {
		if d.segment == segment {
			found = d
		}
	})
	return found
}

// occupy counts a region in device memory, if it is in any: that must be of the region's adapter.
func (m *mr) occupy(c *Client) error {
	d := c.dmAt(m.segment)
	if d == nil {
		return nil
	}
	if d.adapter != m.pd.adapter {
		return command.Errorf(command.Invalid, "Segment %d is device memory of adapter %q, want %q, the domain's", m.segment,
			d.adapter.name, m.pd.adapter.name)
	}
	m.dm = d
	d.uses++
	return nil
}

// vacate is the end of a region in device memory.
func (m *mr) vacate() {
	if m.dm != nil {
		m.dm.uses--
		m.dm = nil
	}
}

func (c *Client) destroyDM(h command.Handle) (func(), error) {
	d := c.dms.Get(h)
	if d == nil {
		return nil, notFound("device memory", h)
	}
	if d.uses > 0 {
		return nil, busy("the device memory", d.uses)
	}
	c.dms.Remove(h)
	if !d.imported {
		d.adapter.dmTaken -= d.size
	}
	return d.release, nil
}

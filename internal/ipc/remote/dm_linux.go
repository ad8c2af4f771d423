package remote

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
)

// deviceMemory is device memory of the program. The driver has taken it from the adapter's, and its bytes are in a segment of this machine,
// which the program has mapped: what regions in it are for is reached there.
type deviceMemory struct {
	adapter uint32
	segment uint32 // the program's
	there   uint32 // the driver's, which nobody looks into
	size    uint64
	uses    int // regions in it
	release func()
}

// place makes the segment of device memory that the driver has granted.
func (p *program) place(ctx context.Context, h command.Handle, d deviceMemory, make func() (uint32, func(), error)) (command.DeviceMemory,
	error) {
	var err error
	if d.segment, d.release, err = make(); err != nil {
		q := proto.DestroyArgs{Kind: command.KindDM, Handle: h}
		_, _ = p.ask(context.WithoutCancel(ctx), proto.OpDestroy, proto.Encode(q), region{})
		return command.DeviceMemory{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.memories[h] = &d
	return command.DeviceMemory{Handle: h, Segment: d.segment, Size: d.size}, nil
}

// PlaceDM allocates device memory, in a segment that place makes.
func (p *program) PlaceDM(ctx context.Context, q command.AllocDM,
	place func(size uint64) (segment uint32, release func(), err error)) (command.DeviceMemory, error) {
	b, err := p.ask(ctx, proto.OpAllocDM, proto.Encode(q), region{})
	if err != nil {
		return command.DeviceMemory{}, err
	}
	d, err := proto.Decode[command.DeviceMemory](b)
	if err != nil {
		return command.DeviceMemory{}, err
	}
	return p.place(ctx, d.Handle, deviceMemory{adapter: q.Adapter, there: d.Segment, size: d.Size}, func() (uint32, func(), error) {
		return place(d.Size)
	})
}

// deviceMemoryOf returns the device memory that a region is to be in, nil if none, and the segment that it is to the driver. Such a region
// keeps its place.
func (p *program) deviceMemoryOf(q *command.ReregisterMemory) (in *deviceMemory, there uint32, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.Segment != 0 {
		for _, d := range p.memories {
			if d.segment == q.Segment {
				in = d
			}
		}
	}
	adapter, known := p.domains[q.PD]
	switch {
	case in != nil && q.Memory != 0, q.Memory != 0 && p.regions[q.Memory].within != nil:
		return nil, 0, command.Errorf(command.Invalid, "a region of device memory stays as it is")
	case in == nil:
		return nil, 0, nil
	case known && adapter != in.adapter:
		return nil, 0, command.Errorf(command.Invalid, "Segment %d is device memory of adapter %d, want %d, the domain's", q.Segment,
			in.adapter, adapter)
	case q.SegmentOffset > in.size || q.Length > in.size-q.SegmentOffset:
		return nil, 0, command.Errorf(command.Invalid, "SegmentOffset %d with Length %d: allowed: within the %d bytes of segment %d",
			q.SegmentOffset, q.Length, in.size, q.Segment)
	}
	return in, in.there, nil
}

// mayDestroy says whether an object may end, of those that this side knows better than the driver.
func (p *program) mayDestroy(q proto.DestroyArgs) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.memories[q.Handle]; q.Kind == command.KindDM && d != nil && d.uses > 0 {
		return command.Errorf(command.Busy, "the device memory is in use: regions in it: %d", d.uses)
	}
	return nil
}

// dropDM frees the segment of device memory. The caller holds mu.
func (p *program) dropDM(h command.Handle) {
	if d := p.memories[h]; d != nil {
		delete(p.memories, h)
		d.release()
	}
}

// ImportFrom gives the program an object of another one of the agent's. place passes device memory on.
func (p *program) ImportFrom(ctx context.Context, from server.Session, q proto.ImportArgs,
	place func(segment uint32) (own uint32, release func(), err error)) (r proto.Imported, err error) {
	o, ok := from.(*program)
	if !ok {
		return r, command.Errorf(command.Unsupported, "not from this program")
	}
	b, err := p.ask(ctx, proto.OpImport, proto.Encode(importing{From: o.number, Kind: q.Kind, Handle: q.Handle, PD: q.PD}), region{})
	if err != nil {
		return r, err
	}
	if r, err = proto.Decode[proto.Imported](b); err != nil || q.Kind != command.KindDM {
		return r, err
	}
	o.mu.Lock()
	m := o.memories[q.Handle]
	o.mu.Unlock()
	if m == nil { // it has ended since
		m = &deviceMemory{}
	}
	d, err := p.place(ctx, r.Handle, deviceMemory{adapter: m.adapter, there: r.Segment, size: r.Size}, func() (uint32, func(), error) {
		return place(m.segment)
	})
	r.Segment = d.Segment
	return r, err
}

package client

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/shared"
)

func (p *program) arena(id uint32) []byte {
	list := *p.arenas.Load()
	if uint64(id) >= uint64(len(list)) {
		return nil
	}
	return list[id]
}

// segment returns a mapped segment, or requests it for the next time.
func (p *program) segment(id uint32) (mem []byte, coming bool) {
	if mem := (*p.segments.Load())[id]; mem != nil {
		return mem, false
	}
	d := &p.client.introduced
	d.mu.Lock()
	defer d.mu.Unlock()
	if refused, asked := p.asked[id]; asked || p.gone || d.stopped {
		return nil, !refused && !p.gone
	}
	p.asked[id] = false
	p.client.workers.Add(1)
	go func() {
		defer p.client.workers.Done()
		p.fetch(id)
	}()
	return nil, true
}

// fetch requests a segment from the driver and maps it.
func (p *program) fetch(id uint32) {
	c := p.client
	ctx, cancel := context.WithTimeout(context.Background(), segmentTime)
	defer cancel()
	r, err := c.call(ctx, proto.OpMapSegment, proto.Encode(proto.MapSegmentArgs{Program: p.id, Segment: id}))
	for _, fd := range r.fds {
		defer unix.Close(fd)
	}
	var mem []byte
	if err == nil {
		var s proto.SegmentReply
		if s, err = proto.Decode[proto.SegmentReply](r.body); err == nil && len(r.fds) == 1 {
			if mem, err = shared.Map(r.fds[0], s.Size); err == nil {
				shared.Populate(mem[:min(s.Size, mapFirst)])
			}
		}
	}
	c.introduced.mu.Lock()
	defer c.introduced.mu.Unlock()
	if err != nil || mem == nil {
		p.asked[id] = true
		return
	}
	if _, wanted := p.asked[id]; !wanted || p.gone { // dropped meanwhile
		_ = unix.Munmap(mem)
		return
	}
	p.setSegment(id, mem)
}

func (p *program) setSegment(id uint32, mem []byte) {
	old := *p.segments.Load()
	list := make(map[uint32][]byte, len(old)+1)
	for k, v := range old {
		list[k] = v
	}
	if delete(list, id); mem != nil {
		list[id] = mem
	}
	p.segments.Store(&list)
}

// drop unmaps memory of a neighbour. The driver has ensured that nobody is in the middle of an operation
// that uses it; the records, which are also read outside operations, stay mapped as zeros.
func (c *Client) drop(body []byte) error {
	b, err := proto.Decode[proto.DropBody](body)
	if err != nil {
		return err
	}
	d := &c.introduced
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.programs[b.Program]
	if p == nil {
		return nil
	}
	if b.Segment != 0 {
		delete(p.asked, b.Segment)
		if mem := (*p.segments.Load())[b.Segment]; mem != nil {
			p.setSegment(b.Segment, nil)
			_ = unix.Munmap(mem)
		}
		return nil
	}
	delete(d.programs, b.Program)
	p.unmap()
	return nil
}

// unmap unmaps a neighbour. The caller holds introduced.mu.
func (p *program) unmap() {
	p.gone = true
	for _, mem := range p.areas {
		shared.Retire(mem)
	}
	for _, mem := range *p.arenas.Load() {
		_ = unix.Munmap(mem)
	}
	p.arenas.Store(&[][]byte{})
	for _, mem := range *p.segments.Load() {
		_ = unix.Munmap(mem)
	}
	p.segments.Store(&map[uint32][]byte{})
	if p.keys != nil {
		_ = unix.Munmap(p.keys)
		p.keys = nil
	}
}

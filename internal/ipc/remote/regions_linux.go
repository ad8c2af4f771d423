package remote

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/reach"
)

// region is memory that the program has registered.
type region struct {
	base, length uint64
	to           reach.Performer
	release      func()
	within       *deviceMemory // nil: it is in none
}

// register has the driver register memory of the program, which it reaches through this side.
func (p *program) register(ctx context.Context, op proto.Opcode, body []byte) ([]byte, error) {
	var q command.ReregisterMemory
	var err error
	switch op {
	case proto.OpRegisterMemory:
		q.RegisterMemory, err = proto.Decode[command.RegisterMemory](body)
	case proto.OpRegisterMemoryAt:
		q.RegisterMemoryAt, err = proto.Decode[command.RegisterMemoryAt](body)
	default:
		q, err = proto.Decode[command.ReregisterMemory](body)
	}
	if err != nil {
		return nil, err
	}
	in, there, err := p.deviceMemoryOf(&q)
	if err != nil {
		return nil, err
	}
	r := region{base: q.Base, length: q.Length, within: in, release: func() {}}
	if q.Length > 0 || in == nil {
		if r, err = p.reach(q.RegisterMemory); err != nil {
			return nil, err
		}
		r.within, there = in, 0
	}
	q.Segment, q.SegmentOffset = there, 0 // a segment is reached as the program has it
	switch op {
	case proto.OpRegisterMemory:
		body = proto.Encode(q.RegisterMemory)
	case proto.OpRegisterMemoryAt:
		body = proto.Encode(q.RegisterMemoryAt)
	default:
		body = proto.Encode(q)
	}
	b, err := p.ask(ctx, op, body, r)
	if err != nil {
		r.release()
	}
	return b, err
}

// reach finds out how memory of the program is reached.
func (p *program) reach(q command.RegisterMemory) (r region, err error) {
	q.Segment, q.SegmentOffset = 0, 0
	to, err := p.cfg.Reach(q)
	if err != nil {
		return r, err
	}
	r = region{base: q.Base, length: q.Length, release: func() {}}
	if to.Release != nil {
		r.release = to.Release
	}
	var ok bool
	if r.to, ok = to.Remote.(reach.Performer); !ok {
		r.release()
		return r, command.Errorf(command.Unsupported, "memory of the program is reached by %s; allowed: process_vm", to.Path)
	}
	return r, nil
}

// dropRegion forgets memory. The caller holds mu.
func (p *program) dropRegion(h command.Handle) {
	r, ok := p.regions[h]
	if !ok {
		return
	}
	r.release()
	if r.within != nil {
		r.within.uses--
	}
	delete(p.regions, h)
}

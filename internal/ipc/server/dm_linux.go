package server

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// placer is a session with device memory.
type placer interface {
	PlaceDM(ctx context.Context, q command.AllocDM,
		place func(size uint64) (segment uint32, release func(), err error)) (command.DeviceMemory, error)
}

// allocDM allocates device memory, which is a segment of the program's that ends with it.
func (n *session) allocDM(ctx context.Context, body []byte) ([]byte, []*file, error) {
	q, err := proto.Decode[command.AllocDM](body)
	if err != nil {
		return nil, nil, err
	}
	p, ok := n.client.(placer)
	if !ok {
		return nil, nil, command.Errorf(command.Unsupported, "not by this driver")
	}
	var out []*file
	d, err := p.PlaceDM(ctx, q, func(size uint64) (uint32, func(), error) {
		id, f, err := n.segments.alloc(size, func(fd int) *file {
			return n.keepForNeighbours(fd, "device memory") // for those who import it, too
		})
		if err != nil {
			return 0, nil, err
		}
		out = append(out, f)
		return id, func() { _ = n.segments.free(id) }, nil
	})
	if err != nil {
		releaseAll(out)
		return nil, nil, err
	}
	return proto.Encode(d), out, nil
}

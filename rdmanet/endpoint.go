package rdmanet

import (
	"context"
	"errors"
	"fmt"

	"github.com/softvpi/softvpi/nd"
)

// Buffers configures a connection's buffers. The zero value is ready to use.
type Buffers struct {
	// Count is how many messages may be in flight in each direction, 2 to 4096; 0: 16.
	Count int
	// Size is the size of a message in bytes, 256 to 16 MiB; 0: 16 KiB.
	Size int
}

func (b *Buffers) complete() error {
	if b.Count == 0 {
		b.Count = 16
	}
	if b.Size == 0 {
		b.Size = 16 << 10
	}
	if b.Count < 2 || b.Count > maxBuffers {
		return fmt.Errorf("rdmanet: Buffers.Count is %d, want 2 to %d", b.Count, maxBuffers)
	}
	if b.Size < minBufferSize || b.Size > maxBufferSize {
		return fmt.Errorf("rdmanet: Buffers.Size is %d, want %d to %d", b.Size, minBufferSize, maxBufferSize)
	}
	return nil
}

// endpoint is the queue pair of a connection with its memory: receive buffers followed by send buffers.
type endpoint struct {
	cq        *nd.CompletionQueue
	qp        *nd.QueuePair
	mr        *nd.MemoryRegion
	connector *nd.Connector
	memory    []byte
	token     uint32
	buffers   int // for data, in each direction
	size      int // of each
	sendSize  int // largest message in bytes that also fits the peer's buffers
}

// newEndpoint creates an endpoint and posts its receives.
func newEndpoint(ctx context.Context, a *nd.Adapter, b Buffers) (_ *endpoint, err error) {
	e := &endpoint{buffers: b.Count, size: b.Size}
	defer func() {
		if err != nil {
			_ = e.close()
		}
	}()
	receives, sends := b.Count+controlBuffers, b.Count+controlSends
	if e.cq, err = a.CreateCompletionQueue(receives + sends); err != nil {
		return nil, err
	}
	if e.mr, err = a.CreateMemoryRegion(); err != nil {
		return nil, err
	}
	if err := e.allocate(ctx, (receives+b.Count)*b.Size); err != nil {
		return nil, err
	}
	e.qp, err = a.CreateQueuePair(nd.QueuePairConfig{
		ReceiveCompletionQueue: e.cq, InitiatorCompletionQueue: e.cq,
		ReceiveQueueDepth: receives, InitiatorQueueDepth: sends, InlineDataSize: headerSize,
	})
	if err != nil {
		return nil, err
	}
	for i := range receives {
		if err := e.postReceive(i); err != nil {
			return nil, err
		}
	}
	e.connector, err = a.CreateConnector()
	return e, err
}

// allocate allocates memory that is shared with the driver, or plain memory if none is left.
func (e *endpoint) allocate(ctx context.Context, size int) error {
	err := e.mr.Allocate(ctx, size, nd.MRFlagAllowLocalWrite)
	if errors.Is(err, nd.ErrInsufficientResources) {
		err = e.mr.Register(ctx, make([]byte, size), nd.MRFlagAllowLocalWrite)
	}
	e.memory, e.token = e.mr.Buffer(), e.mr.GetLocalToken()
	return err
}

func (e *endpoint) hello() []byte {
	return hello{buffers: uint32(e.buffers), size: uint32(e.size)}.encode()
}

func (e *endpoint) receiveBuffer(i int) []byte { return e.memory[i*e.size : (i+1)*e.size] }

func (e *endpoint) sendBuffer(i int) []byte { return e.receiveBuffer(e.buffers + controlBuffers + i) }

func (e *endpoint) postReceive(i int) error {
	return e.qp.Receive(uint64(i), []nd.SGE{{Buffer: e.receiveBuffer(i), MemoryRegionToken: e.token}})
}

// send sends the first n bytes of a send buffer.
func (e *endpoint) send(i, n int) error {
	return e.qp.Send(uint64(i), []nd.SGE{{Buffer: e.sendBuffer(i)[:n], MemoryRegionToken: e.token}}, 0)
}

// sendControl sends a message without data.
func (e *endpoint) sendControl(h header) error {
	var b [headerSize]byte
	h.put(b[:])
	return e.qp.Send(controlContext, []nd.SGE{{Buffer: b[:]}}, nd.OpFlagInline)
}

// close releases whatever has been created.
func (e *endpoint) close() error {
	var errs []error
	if e.connector != nil {
		errs = append(errs, e.connector.Close())
	}
	if e.qp != nil {
		errs = append(errs, e.qp.Close())
	}
	if e.cq != nil {
		errs = append(errs, e.cq.Close())
	}
	if e.mr != nil {
		errs = append(errs, e.mr.Close())
	}
	return errors.Join(errs...)
}

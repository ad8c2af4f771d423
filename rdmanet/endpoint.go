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
	poller    *poller
	qp        *nd.QueuePair
	mr        *nd.MemoryRegion
	connector *nd.Connector
	memory    []byte
	token     uint32
	buffers   int // for data, in each direction
	size      int // of each
	sendSize  int // largest message in bytes that also fits the peer's buffers
}

// open creates the parts of an endpoint, whose results go to c, and posts its receives.
func (e *endpoint) open(ctx context.Context, a *nd.Adapter, c *Conn) (err error) {
	receives, sends := e.depths()
	if e.poller, err = openPoller(a); err != nil {
		return err
	}
	c.readable.poller, c.writable.poller = e.poller, e.poller
	if err := e.poller.join(c, receives+sends); err != nil {
		return err
	}
	if e.mr, err = a.CreateMemoryRegion(); err != nil {
		return err
	}
	if err := e.allocate(ctx, (receives+e.buffers)*e.size); err != nil {
		return err
	}
	e.qp, err = a.CreateQueuePair(nd.QueuePairConfig{
		ReceiveCompletionQueue: e.poller.queue, InitiatorCompletionQueue: e.poller.queue, Context: c,
		ReceiveQueueDepth: receives, InitiatorQueueDepth: sends, InlineDataSize: headerSize,
	})
	if err != nil {
		return err
	}
	for i := range receives {
		if err := e.postReceive(i); err != nil {
			return err
		}
	}
	e.connector, err = a.CreateConnector()
	return err
}

// depths returns how many receives and sends may be outstanding.
func (e *endpoint) depths() (receives, sends int) {
	return e.buffers + controlBuffers, e.buffers + controlSends
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

// send sends the first n bytes of a send buffer; context comes with the result, if one is wanted.
func (e *endpoint) send(context uint64, i, n int, silent bool) error {
	flags := nd.OpFlags(0)
	if silent {
		flags = nd.OpFlagSilentSuccess
	}
	return e.qp.Send(context, []nd.SGE{{Buffer: e.sendBuffer(i)[:n], MemoryRegionToken: e.token}}, flags)
}

// sendControl sends a message without data.
func (e *endpoint) sendControl(context uint64, h header) error {
	var b [headerSize]byte
	h.put(b[:])
	return e.qp.Send(context, []nd.SGE{{Buffer: b[:]}}, nd.OpFlagInline)
}

// close releases whatever has been created for c.
func (e *endpoint) close(c *Conn) error {
	var errs []error
	if e.connector != nil {
		errs = append(errs, e.connector.Close())
	}
	if e.qp != nil {
		errs = append(errs, e.qp.Close())
	}
	if e.poller != nil {
		receives, sends := e.depths()
		e.poller.leave(c, receives+sends)
		errs = append(errs, e.poller.release())
	}
	if e.mr != nil {
		errs = append(errs, e.mr.Close())
	}
	return errors.Join(errs...)
}

package server

import (
	"context"
	"sync"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// credits count how many more events the driver may push.
type credits struct {
	mu       sync.Mutex
	free     int64
	reserved int64
	granted  chan struct{} // holds a token when there are more
}

func newCredits() *credits { return &credits{granted: make(chan struct{}, 1)} }

// grant adds credits granted by the program, and returns the number of unused ones.
func (c *credits) grant(n uint32) int64 {
	c.mu.Lock()
	c.free += int64(n)
	have := c.free + c.reserved
	c.mu.Unlock()
	select {
	case c.granted <- struct{}{}:
	default:
	}
	return have
}

// reserve takes up to n credits away from others until settle; 0: there are none.
func (c *credits) reserve(n int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n = min(n, c.free)
	c.free -= n
	c.reserved += n
	return n
}

// settle ends a reservation of n credits, of which used were used.
func (c *credits) settle(n, used int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserved -= n
	c.free += n - used
}

// wait waits until more credits are granted.
func (c *credits) wait(ctx context.Context) error {
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pushEvents sends the program the events that tell could not send at once, within the credit that it
// granted.
func (n *session) pushEvents() {
	out := make([]command.Event, proto.MaxPush)
	for {
		have := n.credits.reserve(proto.MaxPush)
		if have == 0 {
			if n.credits.wait(n.ctx) != nil {
				return
			}
			continue
		}
		k, err := n.client.Events(n.ctx, out[:have])
		n.credits.settle(have, int64(k))
		if err != nil {
			if n.ctx.Err() == nil {
				n.end(err)
			}
			return
		}
		if err := n.out.Along(proto.OpEvents, 0, proto.EncodeList(out[:k])); err != nil {
			n.failed(err)
			return
		}
	}
}

// eventTaker is a session whose events the holder of the loop lock may take.
type eventTaker interface {
	TakeEvents(out []command.Event) int
}

// tell implements device.ClientConfig.News: it puts events into the program's track.
func (n *session) tell() {
	const size = int(unsafe.Sizeof(command.Event{}))
	n.out.OfferMade(proto.OpEvents, size, func(most int) []byte {
		from, ok := n.client.(eventTaker) // it is set before the track is
		if !ok {
			return nil
		}
		have := n.credits.reserve(int64(min(most/size, proto.MaxPush)))
		k := from.TakeEvents(n.news[:have])
		n.credits.settle(have, int64(k))
		return proto.Laid(n.news[:k])
	})
}

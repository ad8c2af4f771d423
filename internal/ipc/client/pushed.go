package client

import (
	"context"
	"fmt"
	"sync"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// Events implements command.Commands. The driver keeps what the program has not taken, up to a limit of
// its own.
func (c *Client) Events(ctx context.Context, out []command.Event) (int, error) {
	n, free, err := c.events.wait(ctx, out)
	if free > 0 {
		_ = c.send(proto.OpCredit, 0, proto.Encode(proto.Credit{Events: uint32(free)}))
	}
	return n, err
}

// Deliver has events passed to take as they arrive, in order; take reports whether it accepted one, and
// must not block. Those that it does not accept are kept for Events, as are all later ones until the
// (only) caller of Events comes back for more.
func (c *Client) Deliver(take func(*command.Event) bool) { c.events.deliver(take) }

// eventQueue holds the events that the driver pushed.
type eventQueue struct {
	mu     sync.Mutex
	list   []command.Event
	direct func(*command.Event) bool // takes events if it can do so without waiting
	busy   bool                      // events taken from the list have not been handled yet
	owed   int                       // taken, but their credit not returned yet
	err    error
	news   chan struct{}
	total  int // maximum number that the driver may push
}

func newEventQueue(credits int) *eventQueue {
	return &eventQueue{news: make(chan struct{}, 1), total: credits}
}

func (q *eventQueue) deliver(take func(*command.Event) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.direct = take
}

// push adds events and returns how much credit to grant.
func (q *eventQueue) push(e []command.Event) (free int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list)+len(e)+q.owed > q.total {
		return 0, fmt.Errorf("%w: the driver pushed more events than it had credit for", proto.ErrFrame)
	}
	for len(e) > 0 && q.direct != nil && !q.busy && len(q.list) == 0 && q.direct(&e[0]) {
		e = e[1:]
		q.owed++
	}
	if len(e) > 0 {
		q.list = append(q.list, e...)
		q.signal()
	}
	return q.grant(), nil
}

// grant returns the credit owed if it is worth a frame.
func (q *eventQueue) grant() (free int) {
	if q.owed >= q.total/4 || (len(q.list) == 0 && q.owed > q.total/8) {
		free, q.owed = q.owed, 0
	}
	return free
}

func (q *eventQueue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
	q.signal()
}

func (q *eventQueue) signal() {
	select {
	case q.news <- struct{}{}:
	default:
	}
}

// wait returns events and how much credit to grant.
func (q *eventQueue) wait(ctx context.Context, out []command.Event) (n, free int, err error) {
	if len(out) == 0 {
		return 0, 0, command.Errorf(command.Invalid, "out: needs room for at least one event")
	}
	for {
		if n, free, err := q.take(out); n > 0 || err != nil {
			return n, free, err
		}
		select {
		case <-q.news:
		case <-ctx.Done():
			return 0, 0, command.Ended(ctx)
		}
	}
}

func (q *eventQueue) take(out []command.Event) (n, free int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = copy(out, q.list)
	q.list = append(q.list[:0], q.list[n:]...)
	q.owed += n
	q.busy = n > 0
	free = q.grant()
	if len(q.list) > 0 || q.err != nil {
		q.signal() // for another reader
	}
	if n == 0 {
		err = q.err
	}
	return n, free, err
}

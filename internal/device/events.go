package device

import (
	"context"
	"sync"

	"github.com/softvpi/softvpi/internal/command"
)

// maxEvents bounds the events that a client has not read; past it new ones are
// dropped and counted as "EQ overflows". Connection requests are bounded by the
// listeners' backlogs long before that.
const maxEvents = 1 << 16

// eventQueue holds the events of a client until it reads them.
type eventQueue struct {
	mu     sync.Mutex
	queue  []command.Event
	head   int
	closed bool
	news   chan struct{} // one token: there may be events
}

func newEventQueue() *eventQueue { return &eventQueue{news: make(chan struct{}, 1)} }

// push adds an event and wakes a reader; it reports false when the queue is full.
func (q *eventQueue) push(e command.Event) bool {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return true
	}
	if len(q.queue)-q.head >= maxEvents {
		q.mu.Unlock()
		return false
	}
	q.queue = append(q.queue, e)
	q.mu.Unlock()
	q.signal()
	return true
}

// drop removes the waiting events for which stale is true: those of an object
// that is no more.
func (q *eventQueue) drop(stale func(*command.Event) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	keep := q.queue[:q.head]
	for i := q.head; i < len(q.queue); i++ {
		if !stale(&q.queue[i]) {
			keep = append(keep, q.queue[i])
		}
	}
	q.queue = keep
}

func (q *eventQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

func (q *eventQueue) signal() {
	select {
	case q.news <- struct{}{}:
	default:
	}
}

// take copies events that wait to out.
func (q *eventQueue) take(out []command.Event) (n int, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = copy(out, q.queue[q.head:])
	q.head += n
	if q.head == len(q.queue) {
		q.queue, q.head = q.queue[:0], 0
		if cap(q.queue) > 1024 {
			q.queue = nil
		}
	} else if q.head > 1024 && q.head > len(q.queue)/2 {
		q.queue = append(q.queue[:0], q.queue[q.head:]...)
		q.head = 0
	}
	if q.head < len(q.queue) || q.closed {
		q.signal() // another reader may wait for the rest
	}
	return n, q.closed
}

// wait returns at least one event.
func (q *eventQueue) wait(ctx context.Context, out []command.Event) (int, error) {
	if len(out) == 0 {
		return 0, command.Errorf(command.Invalid, "out: needs room for at least one event")
	}
	for {
		n, closed := q.take(out)
		if n > 0 {
			return n, nil
		}
		if closed {
			return 0, command.Errorf(command.Canceled, "the client is closed")
		}
		select {
		case <-q.news:
		case <-ctx.Done():
			return 0, canceled(ctx)
		}
	}
}

// canceled is the error of a command that its context ended.
func canceled(ctx context.Context) error {
	if context.Cause(ctx) == context.DeadlineExceeded {
		return command.Errorf(command.TimedOut, "the deadline of the call has passed")
	}
	return command.Errorf(command.Canceled, "the call was canceled")
}

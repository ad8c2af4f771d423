// Package eventqueue holds the asynchronous events of a program, or of one of its channels, until it reads them.
package eventqueue

import (
	"context"
	"slices"
	"sync"

	"github.com/softvpi/softvpi/internal/command"
)

// Most is how many events a program may leave unread; past it new ones are
// dropped and counted as "EQ overflows". Connection requests are bounded by the
// listeners' backlogs long before that.
const Most = 1 << 16

// Queue holds events until they are read. Its methods are safe for concurrent use.
type Queue struct {
	mu     sync.Mutex
	queue  []command.Event
	head   int
	closed bool
	busy   bool          // what a reader took it may not have passed on yet
	news   chan struct{} // one token: there may be events
}

// New makes an empty queue.
func New() *Queue { return &Queue{news: make(chan struct{}, 1)} }

// Push adds an event and wakes a reader; it reports false when the queue is full.
func (q *Queue) Push(e command.Event) bool {
	ok := q.Add(e)
	q.Rouse()
	return ok
}

// Add is Push that wakes nobody.
func (q *Queue) Add(e command.Event) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return true
	}
	if len(q.queue)-q.head >= Most {
		return false
	}
	q.queue = append(q.queue, e)
	return true
}

// Drop removes the waiting events for which stale is true: those of an object
// that is no more.
func (q *Queue) Drop(stale func(*command.Event) bool) {
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

// Close ends the queue: what waits can still be read, what comes is dropped.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.Rouse()
}

// Rouse wakes a reader.
func (q *Queue) Rouse() {
	select {
	case q.news <- struct{}{}:
	default:
	}
}

// take copies events that wait to out.
func (q *Queue) take(out []command.Event) (n int, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = q.copyOut(out)
	q.busy = n > 0
	if q.head < len(q.queue) || q.closed {
		q.Rouse() // another reader may wait for the rest
	}
	return n, q.closed
}

// TakeNow copies events that wait to out, and returns how many there were. There are none while a reader that
// waited may still have those before to pass on, which ends when it comes back for more.
func (q *Queue) TakeNow(out []command.Event) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy {
		return 0
	}
	return q.copyOut(out)
}

// Empty reports whether nothing waits.
func (q *Queue) Empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.head == len(q.queue)
}

func (q *Queue) copyOut(out []command.Event) int {
	n := copy(out, q.queue[q.head:])
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
	return n
}

// Wait waits for events and copies them to out; it returns how many, at least one. Errors are *command.Error: TimedOut or
// Canceled by ctx, Canceled where the queue was closed and is empty, Invalid where out has no room.
func (q *Queue) Wait(ctx context.Context, out []command.Event) (int, error) {
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
			return 0, command.Ended(ctx)
		}
	}
}

// Peek returns how many events wait, and the first of them, at most so many.
func (q *Queue) Peek(most int) (waiting int, first []command.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.queue[q.head:]
	return len(all), slices.Clone(all[:min(len(all), most)])
}

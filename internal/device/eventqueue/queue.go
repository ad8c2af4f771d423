// Package eventqueue holds the asynchronous events of a program, or of one of its channels, until it reads them.
package eventqueue

import (
	"context"
	"slices"
	"sync"
	"unsafe"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
)

// Most is how many events a program may leave unread; beyond it new ones are dropped and counted as "EQ
// overflows". Connection requests are limited by the listeners' backlogs long before that.
const Most = 1 << 16

// Queue holds events until they are read. Its methods are safe for concurrent use.
type Queue struct {
	mu     sync.Mutex
	queue  []command.Event
	head   int
	payer  *budget.Account
	paid   uint64 // bytes taken from it
	closed bool
	busy   bool          // a reader may not yet have passed on what it took
	news   chan struct{} // holds a token when there may be events
}

// free is for how many events there is always room, whatever the account says: those of a program that
// reads them in time are not lost because others have used the memory up.
const free = 64

// New creates an empty queue. The memory for more than a few events is taken from an account, nil if nobody
// pays.
func New(payer *budget.Account) *Queue { return &Queue{payer: payer, news: make(chan struct{}, 1)} }

// Push adds an event and wakes a reader; it reports false when the queue is full, or memory is used up.
func (q *Queue) Push(e command.Event) bool {
	ok := q.Add(e)
	q.Rouse()
	return ok
}

// Add is Push without waking a reader.
func (q *Queue) Add(e command.Event) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return true
	}
	if len(q.queue)-q.head >= Most || len(q.queue) == cap(q.queue) && !q.grow() {
		return false
	}
	q.queue = append(q.queue, e)
	return true
}

// grow makes room for more events, unless nobody pays for it.
func (q *Queue) grow() bool {
	if q.head > len(q.queue)/2 { // most of it has been read
		q.queue, q.head = append(q.queue[:0], q.queue[q.head:]...), 0
		return true
	}
	size := max(2*cap(q.queue), free)
	more := uint64(size-max(cap(q.queue), free)) * uint64(unsafe.Sizeof(command.Event{}))
	if more > 0 && q.payer.Take(budget.Memory, more, "a queue of unread events") != nil {
		return false
	}
	q.paid += more
	q.queue = append(make([]command.Event, 0, size), q.queue...)
	return true
}

// shrink gives the memory of a queue that is empty back, if it is much.
func (q *Queue) shrink() {
	if cap(q.queue) > 1024 {
		q.queue = nil
		q.settle()
	}
}

func (q *Queue) settle() {
	q.payer.Give(budget.Memory, q.paid)
	q.paid = 0
}

// Drop removes the waiting events for which stale returns true, because their object no longer exists.
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

// Close ends the queue: waiting events can still be read, new ones are dropped.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	q.settle()
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

// take moves waiting events to out.
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

// TakeNow moves waiting events to out, and returns their number. It returns 0 while a reader in Wait may
// still be passing on earlier ones, which ends when it comes back for more.
func (q *Queue) TakeNow(out []command.Event) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy {
		return 0
	}
	return q.copyOut(out)
}

// Empty reports whether no events are waiting.
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
		q.shrink()
	} else if q.head > 1024 && q.head > len(q.queue)/2 {
		q.queue = append(q.queue[:0], q.queue[q.head:]...)
		q.head = 0
	}
	return n
}

// Wait waits for events and moves them to out; it returns their number, at least one. Errors are
// *command.Error: TimedOut or Canceled by ctx, Canceled if the queue was closed and is empty, Invalid if
// out is empty.
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

// Peek returns how many events wait, and copies of the first ones, at most most.
func (q *Queue) Peek(most int) (waiting int, first []command.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.queue[q.head:]
	return len(all), slices.Clone(all[:min(len(all), most)])
}

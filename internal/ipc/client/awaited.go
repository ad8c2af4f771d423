package client

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// cancelGrace is how long a canceled request waits for the driver's answer.
const cancelGrace = time.Second

// reply is the driver's answer to a request.
type reply struct {
	body []byte
	fds  []int
	err  error
}

// awaited is what waits for the answer to a request: a goroutine on a channel, or a function called by
// whoever receives the answer, which must not block.
type awaited struct {
	ch    chan reply
	then  func(reply)
	since uint32 // look of calls
}

func (a awaited) tell(r reply) {
	if a.then != nil {
		a.then(r)
		return
	}
	a.ch <- r
}

// calls are a client's unanswered requests.
type calls struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]awaited
	err     error // set when the stream ended
	slots   chan struct{}
	overdue overdue
}

func newCalls(n int) *calls {
	return &calls{waiting: map[uint64]awaited{}, slots: make(chan struct{}, n)}
}

// add allocates a request's id.
func (c *calls) add(a awaited) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	c.begun()
	c.last++
	a.since = c.overdue.looks
	c.waiting[c.last] = a
	return c.last, nil
}

// take removes the request that an answer is for; false: nobody waits for it.
func (c *calls) take(id uint64) (awaited, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken(id)
}

// answered is take for an answer that has arrived.
func (c *calls) answered(id uint64) (awaited, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.overdue.heard = c.overdue.looks
	return c.taken(id)
}

func (c *calls) taken(id uint64) (awaited, bool) {
	a, ok := c.waiting[id]
	delete(c.waiting, id)
	return a, ok
}

// fail answers every request, present and future, with err.
func (c *calls) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	err = c.err
	all := c.waiting
	c.waiting = map[uint64]awaited{}
	c.overdue.stop()
	c.mu.Unlock()
	for _, a := range all {
		a.tell(reply{err: err})
	}
}

func (c *calls) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// call sends a request and waits for its answer. If the context ends, the request is canceled in the
// driver; the answer tells which came first. If no answer comes soon after, call gives up: what the
// request created lasts until Close.
func (c *Client) call(ctx context.Context, op proto.Opcode, body []byte) (reply, error) {
	if err := c.calls.enter(ctx); err != nil {
		return reply{}, err
	}
	defer c.calls.leave()
	ch := make(chan reply, 1)
	id, err := c.calls.add(awaited{ch: ch})
	if err != nil {
		return reply{}, err
	}
	if err := c.send(op, id, body); err != nil {
		return reply{}, c.unsent(id, ch, err)
	}
	if r, ok := c.answered(ctx, ch); ok {
		return r, r.err
	}
	_ = c.send(proto.OpCancel, id, nil)
	grace, end := context.WithTimeout(context.Background(), cancelGrace)
	defer end()
	if r, ok := c.answered(grace, ch); ok {
		return r, r.err
	}
	if _, ok := c.calls.take(id); !ok {
		r := <-ch // it came just now
		return r, r.err
	}
	return reply{}, command.Ended(ctx)
}

// begin sends a request; whoever receives the answer, or the error that comes instead, passes it to then.
// If begin returns an error, nothing was begun.
func (c *Client) begin(ctx context.Context, op proto.Opcode, body []byte, then func(reply)) error {
	if err := c.calls.enter(ctx); err != nil {
		return err
	}
	id, err := c.calls.add(awaited{then: func(r reply) {
		c.calls.leave()
		then(r)
	}})
	if err != nil {
		c.calls.leave()
		return err
	}
	if err := c.send(op, id, body); err != nil {
		time.AfterFunc(cancelGrace, func() { // unless the reader of the stream finds out why
			if a, ok := c.calls.take(id); ok {
				a.tell(reply{err: removed(err)})
			}
		})
	}
	return nil
}

// enter waits until another unanswered request is allowed; leave ends it.
func (c *calls) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return command.Ended(ctx)
	}
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return command.Ended(ctx)
	}
}

func (c *calls) leave() { <-c.slots }

// unsent returns the error for a request that could not be sent: what the driver said before it ended the
// stream, if the stream's reader finds it soon.
func (c *Client) unsent(id uint64, ch chan reply, err error) error {
	grace := time.NewTimer(cancelGrace)
	defer grace.Stop()
	select {
	case r := <-ch:
		if r.err != nil {
			err = r.err
		}
	case <-grace.C:
		c.calls.take(id)
	}
	return removed(err)
}

// answered waits for the answer to a request; false: the context ended first. If answers come through a
// track, one of those waiting watches it.
func (c *Client) answered(ctx context.Context, ch chan reply) (reply, bool) {
	c.tracks.enter()
	defer c.tracks.leave(c)
	enough := func() bool { return len(ch) > 0 || ctx.Err() != nil }
	for {
		c.tracks.poll(c, enough)
		select {
		case r := <-ch:
			return r, true
		default:
		}
		select {
		case r := <-ch:
			return r, true
		case <-c.tracks.offered():
		case <-ctx.Done():
			return reply{}, false
		}
	}
}

// Await waits until done is closed or holds a token, which it consumes. While waiting it handles what the
// driver sends, for all. Its error is that of ctx.
func (c *Client) Await(ctx context.Context, done <-chan struct{}) error {
	c.tracks.enter()
	defer c.tracks.leave(c)
	over := false
	enough := func() bool {
		if !over {
			select {
			case <-done:
				over = true
			default:
			}
		}
		return over || ctx.Err() != nil
	}
	for !enough() {
		c.tracks.poll(c, enough)
		if over {
			break
		}
		select {
		case <-done:
			over = true
		case <-c.tracks.offered():
		case <-ctx.Done():
		}
	}
	if over {
		return nil
	}
	return ctx.Err()
}

// removed returns the error of all requests once the stream has ended.
func removed(cause error) error {
	var e *command.Error
	if errors.As(cause, &e) {
		return e
	}
	if errors.Is(cause, io.EOF) { // which is no more than that
		return command.Errorf(command.Removed, "the driver is gone")
	}
	return command.Errorf(command.Removed, "the driver is gone: %v", cause)
}

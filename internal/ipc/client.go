package ipc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/command"
)

// cancelGrace is how long a canceled request waits for the driver's answer.
const cancelGrace = time.Second

// reply is the driver's answer to a request.
type reply struct {
	body []byte
	fds  []int
	err  error
}

// awaited is who wants the answer to a request: who waits at a channel, or a function that whoever
// takes the answer calls. That one must not wait for anything.
type awaited struct {
	ch   chan reply
	then func(reply)
}

func (a awaited) tell(r reply) {
	if a.then != nil {
		a.then(r)
		return
	}
	a.ch <- r
}

// calls are the requests of a client that have no answer yet.
type calls struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]awaited
	err     error // set when the stream ended
	slots   chan struct{}
}

func newCalls(n int) *calls {
	return &calls{waiting: map[uint64]awaited{}, slots: make(chan struct{}, n)}
}

// add makes a request's id.
func (c *calls) add(a awaited) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	c.last++
	c.waiting[c.last] = a
	return c.last, nil
}

// take removes the request that an answer is for; false: nobody waits for it.
func (c *calls) take(id uint64) (awaited, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.waiting[id]
	delete(c.waiting, id)
	return a, ok
}

// fail answers everything, now and later, with err.
func (c *calls) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	err = c.err
	all := c.waiting
	c.waiting = map[uint64]awaited{}
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

// call sends a request and waits for its answer. A context that ends cancels the
// request in the driver; the answer says what came first. An answer that does not
// come soon after is not waited for: what it made lasts until Close.
func (c *Client) call(ctx context.Context, op opcode, body []byte) (reply, error) {
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
	_ = c.send(opCancel, id, nil)
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

// begin sends a request whose answer, or the error that comes instead, then is told by whoever takes it.
// An error here means that nothing was begun.
func (c *Client) begin(ctx context.Context, op opcode, body []byte, then func(reply)) error {
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

// enter waits for the right to one more request without an answer, which leave gives back.
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

// unsent is the error of a request that could not be sent: what the driver said before it
// ended the stream, where the reader of that finds it soon.
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

// answered waits for the answer to a request; false: the context ended first. Where the
// answers come by a track one of those who wait looks at it.
func (c *Client) answered(ctx context.Context, ch chan reply) (reply, bool) {
	c.tracks.enter()
	defer c.tracks.leave(c)
	enough := func() bool { return len(ch) > 0 || ctx.Err() != nil }
	for {
		c.tracks.lead(c, enough)
		select {
		case r := <-ch:
			return r, true
		default:
		}
		select {
		case r := <-ch:
			return r, true
		case <-c.tracks.turn:
		case <-ctx.Done():
			return reply{}, false
		}
	}
}

// Await waits until done is closed or has a token, which it takes, and takes meanwhile what the driver sends, for
// all. The error is that of ctx.
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
		c.tracks.lead(c, enough)
		if over {
			break
		}
		select {
		case <-done:
			over = true
		case <-c.tracks.turn:
		case <-ctx.Done():
		}
	}
	if over {
		return nil
	}
	return ctx.Err()
}

// removed is the error of everything once the stream has ended.
func removed(cause error) error {
	var e *command.Error
	if errors.As(cause, &e) {
		return e
	}
	return command.Errorf(command.Removed, "the driver is gone: %v", cause)
}

// ask sends a request with one answer.
func ask[R, Q any](ctx context.Context, c *Client, op opcode, q Q) (r R, err error) {
	a, err := c.call(ctx, op, encode(q))
	if err != nil {
		return r, err
	}
	return answerIn[R](a)
}

func answerIn[R any](a reply) (r R, err error) {
	if r, err = decode[R](a.body); err != nil {
		return r, command.Errorf(command.Internal, "the driver's answer: %v", err)
	}
	return r, nil
}

func askList[R, Q any](ctx context.Context, c *Client, op opcode, q Q) ([]R, error) {
	a, err := c.call(ctx, op, encode(q))
	if err != nil {
		return nil, err
	}
	r, err := decodeList[R](a.body)
	if err != nil {
		return nil, command.Errorf(command.Internal, "the driver's answer: %v", err)
	}
	return r, nil
}

func tell[Q any](ctx context.Context, c *Client, op opcode, q Q) error {
	_, err := ask[empty](ctx, c, op, q)
	return err
}

var _ command.Commands = (*Client)(nil)

// Adapters implements command.Commands.
func (c *Client) Adapters(ctx context.Context) ([]command.AdapterInfo, error) {
	return askList[command.AdapterInfo](ctx, c, opAdapters, empty{})
}

// GIDs implements command.Commands.
func (c *Client) GIDs(ctx context.Context, adapter uint32) ([]command.GID, error) {
	return askList[command.GID](ctx, c, opGIDs, adapterArgs{adapter})
}

// Counters implements command.Commands.
func (c *Client) Counters(ctx context.Context, adapter uint32) ([]command.Counter, error) {
	return askList[command.Counter](ctx, c, opCounters, adapterArgs{adapter})
}

// Port implements command.Commands.
func (c *Client) Port(ctx context.Context, adapter uint32) (command.PortInfo, error) {
	return ask[command.PortInfo](ctx, c, opPort, adapterArgs{adapter})
}

// AllocPD implements command.Commands.
func (c *Client) AllocPD(ctx context.Context, adapter uint32) (command.Handle, error) {
	return ask[command.Handle](ctx, c, opAllocPD, adapterArgs{adapter})
}

// RegisterMemory implements command.Commands. Memory that lies in no segment must
// stay where it is until the region is destroyed.
func (c *Client) RegisterMemory(ctx context.Context, r command.RegisterMemory) (command.Memory, error) {
	return ask[command.Memory](ctx, c, opRegisterMemory, r)
}

// AllocWindow implements command.Commands.
func (c *Client) AllocWindow(ctx context.Context, pd command.Handle, typ uint32) (command.Memory, error) {
	return ask[command.Memory](ctx, c, opAllocWindow, windowArgs{pd, typ})
}

// CreateCQ implements command.Commands.
func (c *Client) CreateCQ(ctx context.Context, q command.CreateCQ) (command.Queue, error) {
	r, err := ask[command.Queue](ctx, c, opCreateCQ, q)
	if err == nil {
		err = c.words.set(c, r)
	}
	return r, err
}

// ResizeCQ implements command.Commands.
func (c *Client) ResizeCQ(ctx context.Context, cq command.Handle, depth uint32) (command.Queue, error) {
	r, err := ask[command.Queue](ctx, c, opResizeCQ, resizeArgs{cq, depth})
	if err == nil {
		err = c.words.set(c, r)
	}
	return r, err
}

// ModerateCQ implements command.Commands.
func (c *Client) ModerateCQ(ctx context.Context, m command.ModerateCQ) error {
	return tell(ctx, c, opModerateCQ, m)
}

// CreateSRQ implements command.Commands.
func (c *Client) CreateSRQ(ctx context.Context, q command.CreateSRQ) (command.Queue, error) {
	return ask[command.Queue](ctx, c, opCreateSRQ, q)
}

// ModifySRQ implements command.Commands.
func (c *Client) ModifySRQ(ctx context.Context, m command.ModifySRQ) error {
	return tell(ctx, c, opModifySRQ, m)
}

// ResizeSRQ implements command.Commands. Nothing may be posted to the SRQ from
// before the call until the program has gone on to the new ring.
func (c *Client) ResizeSRQ(ctx context.Context, srq command.Handle, depth uint32) (command.Queue, error) {
	return ask[command.Queue](ctx, c, opResizeSRQ, resizeArgs{srq, depth})
}

// QuerySRQ implements command.Commands.
func (c *Client) QuerySRQ(ctx context.Context, srq command.Handle) (command.SRQInfo, error) {
	return ask[command.SRQInfo](ctx, c, opQuerySRQ, handleArgs{srq})
}

// CreateQP implements command.Commands.
func (c *Client) CreateQP(ctx context.Context, q command.CreateQP) (command.QueuePair, error) {
	return ask[command.QueuePair](ctx, c, opCreateQP, q)
}

// ModifyQP implements command.Commands.
func (c *Client) ModifyQP(ctx context.Context, m command.ModifyQP) error {
	return tell(ctx, c, opModifyQP, m)
}

// QueryQP implements command.Commands.
func (c *Client) QueryQP(ctx context.Context, qp command.Handle) (command.QPInfo, error) {
	return ask[command.QPInfo](ctx, c, opQueryQP, handleArgs{qp})
}

// CreateAH implements command.Commands.
func (c *Client) CreateAH(ctx context.Context, a command.CreateAH) (command.Handle, error) {
	return ask[command.Handle](ctx, c, opCreateAH, a)
}

// AttachMulticast implements command.Commands.
func (c *Client) AttachMulticast(ctx context.Context, qp command.Handle, group command.Addr) error {
	return tell(ctx, c, opAttachMulticast, multicastArgs{QP: qp, Group: group})
}

// DetachMulticast implements command.Commands.
func (c *Client) DetachMulticast(ctx context.Context, qp command.Handle, group command.Addr) error {
	return tell(ctx, c, opDetachMulticast, multicastArgs{QP: qp, Group: group})
}

// Destroy implements command.Commands.
func (c *Client) Destroy(ctx context.Context, kind command.Kind, h command.Handle) error {
	err := tell(ctx, c, opDestroy, destroyArgs{kind, h})
	if err == nil && kind == command.KindCQ {
		c.words.drop(h)
	}
	if err == nil && kind == command.KindQP {
		c.introduced.forget(h)
	}
	return err
}

// CMCreate implements command.Commands.
func (c *Client) CMCreate(ctx context.Context, q command.CMCreate) (command.Handle, error) {
	return ask[command.Handle](ctx, c, opCMCreate, q)
}

// CMBind implements command.Commands.
func (c *Client) CMBind(ctx context.Context, id command.Handle, local command.Endpoint) (command.Endpoint, error) {
	return ask[command.Endpoint](ctx, c, opCMBind, bindArgs{ID: id, Local: local})
}

// CMListen implements command.Commands.
func (c *Client) CMListen(ctx context.Context, id command.Handle, backlog uint32) error {
	return tell(ctx, c, opCMListen, listenArgs{id, backlog})
}

// CMConnect implements command.Commands.
func (c *Client) CMConnect(ctx context.Context, q command.CMConnect) (command.Handle, error) {
	return ask[command.Handle](ctx, c, opCMConnect, q)
}

// CMAccept implements command.Commands.
func (c *Client) CMAccept(ctx context.Context, q command.CMAccept) error {
	return tell(ctx, c, opCMAccept, q)
}

// BeginConnect is CMConnect that does not wait for the driver: then is told what that returns, by whoever
// takes the answer; it must not wait for anything. Events of the id may come before. An error here means
// that nothing was begun.
func (c *Client) BeginConnect(ctx context.Context, q command.CMConnect, then func(command.Handle, error)) error {
	return c.begin(ctx, opCMConnect, encode(q), func(r reply) {
		var h command.Handle
		err := r.err
		if err == nil {
			h, err = answerIn[command.Handle](r)
		}
		then(h, err)
	})
}

// BeginAccept is CMAccept in the same way.
func (c *Client) BeginAccept(ctx context.Context, q command.CMAccept, then func(error)) error {
	return c.begin(ctx, opCMAccept, encode(q), func(r reply) { then(r.err) })
}

// CMEstablish implements command.Commands. It does not wait for the driver.
func (c *Client) CMEstablish(ctx context.Context, id command.Handle) error {
	if ctx.Err() != nil {
		return command.Ended(ctx)
	}
	if err := c.calls.failure(); err != nil {
		return err
	}
	if err := c.send(opCMEstablish, unanswered, encode(handleArgs{id})); err != nil {
		return removed(err)
	}
	return nil
}

// CMReject implements command.Commands.
func (c *Client) CMReject(ctx context.Context, q command.CMReject) error {
	return tell(ctx, c, opCMReject, q)
}

// CMDisconnect implements command.Commands.
func (c *Client) CMDisconnect(ctx context.Context, id command.Handle) error {
	return tell(ctx, c, opCMDisconnect, handleArgs{id})
}

// CMQuery implements command.Commands.
func (c *Client) CMQuery(ctx context.Context, id command.Handle) (command.CMInfo, error) {
	return ask[command.CMInfo](ctx, c, opCMQuery, handleArgs{id})
}

// CMAttributes implements command.Commands.
func (c *Client) CMAttributes(ctx context.Context, id command.Handle, state command.QPState) (command.ModifyQP, error) {
	return ask[command.ModifyQP](ctx, c, opCMAttributes, attributesArgs{id, state})
}

// Events implements command.Commands. The driver keeps what the program has not
// taken, up to its own bound.
func (c *Client) Events(ctx context.Context, out []command.Event) (int, error) {
	n, free, err := c.events.wait(ctx, out)
	if free > 0 {
		_ = c.send(opCredit, 0, encode(credit{uint32(free)}))
	}
	return n, err
}

// Deliver has events go to take as they come, in their order; it reports whether it took one, and must not
// wait for anything. Those that it does not take are kept for Events, and so are all behind them
// until the caller of Events, of whom there is one, comes back for more.
func (c *Client) Deliver(take func(*command.Event) bool) { c.events.deliver(take) }

// eventQueue holds the events that the driver pushed.
type eventQueue struct {
	mu     sync.Mutex
	list   []command.Event
	direct func(*command.Event) bool // takes them where they need not wait
	busy   bool                      // those that were taken from the list are not dealt with yet
	owed   int                       // taken, but credit for them not granted yet
	err    error
	news   chan struct{}
	total  int // most that the driver may push
}

func newEventQueue(credits int) *eventQueue {
	return &eventQueue{news: make(chan struct{}, 1), total: credits}
}

func (q *eventQueue) deliver(take func(*command.Event) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.direct = take
}

// push returns how much credit to grant.
func (q *eventQueue) push(e []command.Event) (free int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list)+len(e)+q.owed > q.total {
		return 0, fmt.Errorf("%w: the driver pushed more events than it had credit for", errFrame)
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

// grant returns what is owed where that is worth a frame.
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

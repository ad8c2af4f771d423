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

// calls are the requests of a client that have no answer yet.
type calls struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan reply
	err     error // set when the stream ended
	slots   chan struct{}
}

func newCalls(n int) *calls {
	return &calls{waiting: map[uint64]chan reply{}, slots: make(chan struct{}, n)}
}

// add makes a request's id and the channel of its answer.
func (c *calls) add() (uint64, chan reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, nil, c.err
	}
	c.last++
	ch := make(chan reply, 1)
	c.waiting[c.last] = ch
	return c.last, ch, nil
}

// take removes the request that an answer is for; nil: nobody waits for it.
func (c *calls) take(id uint64) chan reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := c.waiting[id]
	delete(c.waiting, id)
	return ch
}

// fail answers everything, now and later, with err.
func (c *calls) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	for id, ch := range c.waiting {
		ch <- reply{err: c.err}
		delete(c.waiting, id)
	}
}

// wait reports whether a request has no answer yet.
func (c *calls) wait() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) > 0
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
	select {
	case c.calls.slots <- struct{}{}:
	case <-ctx.Done():
		return reply{}, command.Ended(ctx)
	}
	defer func() { <-c.calls.slots }()
	if ctx.Err() != nil {
		return reply{}, command.Ended(ctx)
	}
	id, ch, err := c.calls.add()
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
	if c.calls.take(id) == nil {
		r := <-ch // it came just now
		return r, r.err
	}
	c.tracks.left(c)
	return reply{}, command.Ended(ctx)
}

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
	for {
		c.tracks.lead(c, ctx, ch)
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
	r, err = decode[R](a.body)
	if err != nil {
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

// eventQueue holds the events that the driver pushed.
type eventQueue struct {
	mu    sync.Mutex
	list  []command.Event
	owed  int // taken, but credit for them not granted yet
	err   error
	news  chan struct{}
	total int // most that the driver may push
}

func newEventQueue(credits int) *eventQueue {
	return &eventQueue{news: make(chan struct{}, 1), total: credits}
}

func (q *eventQueue) push(e []command.Event) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list)+len(e)+q.owed > q.total {
		return fmt.Errorf("%w: the driver pushed more events than it had credit for", errFrame)
	}
	q.list = append(q.list, e...)
	q.signal()
	return nil
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
	if q.owed >= q.total/4 || (len(q.list) == 0 && q.owed > q.total/8) {
		free, q.owed = q.owed, 0
	}
	if len(q.list) > 0 || q.err != nil {
		q.signal() // for another reader
	}
	if n == 0 {
		err = q.err
	}
	return n, free, err
}

package device

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/moderation"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport"
)

// maxModeration is the most that either value of ModerateCQ can be, as they are 16-bit fields of the adapter.
const maxModeration = 1<<16 - 1

// cq is a completion queue.
type cq struct {
	handle   command.Handle
	client   *Client
	adapter  *adapter
	ref      uint32 // its index in the adapter's list
	ring     *ring.CQ
	block    ring.Block
	geometry ring.Geometry
	old      []oldRing // rings before resizes, until the program has finished them
	uses     int
	channel  *channel // nil: none
	waiters  []*waiter
	times    bool // completions say when they were made
	lossy    bool // completions without room are dropped
	failed   bool
	ended    atomic.Pointer[command.Error] // why waiters get no more events; nil while the CQ exists

	// Moderation (WinOF manual: CQ interrupt moderation): an event is delayed as chosen by the program, or
	// else as the adapter's Moderation says.
	own    bool // the program has chosen
	chosen Pace
	meter  moderation.Meter
	held   uint32
	due    clock.Time
	queued bool // in the host's list of CQs that hold back events
}

type oldRing struct {
	ring  *ring.CQ
	block ring.Block
}

// CreateCQ implements command.Commands.
func (c *Client) CreateCQ(ctx context.Context, r command.CreateCQ) (command.Queue, error) {
	a, err := c.begin(ctx, r.Adapter)
	if err != nil {
		return command.Queue{}, err
	}
	defer c.host.unlock()
	ch, err := c.completions(command.Handle(r.Channel))
	if err != nil {
		return command.Queue{}, err
	}
	if err := within("Depth", r.Depth, 1, a.limits.CQDepth); err != nil {
		return command.Queue{}, err
	}
	if err := flags("Flags", r.Flags, command.CQTimestamps|command.CQIgnoreOverrun); err != nil {
		return command.Queue{}, err
	}
	if err := c.room(a, "CQs", a.objects.CQ, a.limits.CQ); err != nil {
		return command.Queue{}, err
	}
	g := ring.CQGeometry(int(r.Depth))
	q := &cq{
		client: c, adapter: a, due: clock.Never, geometry: g, channel: ch,
		times: r.Flags&command.CQTimestamps != 0, lossy: r.Flags&command.CQIgnoreOverrun != 0,
	}
	if q.ring, q.block, err = c.openCQ(g); err != nil {
		return command.Queue{}, err
	}
	if q.handle, err = c.cqs.Add(q); err != nil {
		c.freeBlock(q.block)
		return command.Queue{}, err
	}
	a.addCQ(q)
	ch.join()
	return queueOf(q.handle, q.ref, g, q.block), nil
}

func (c *Client) openCQ(g ring.Geometry) (*ring.CQ, ring.Block, error) {
	n := g.Size()
	if c.delegates != nil {
		n += ring.SharedSize(g)
	}
	b, err := c.allocSize(n)
	if err != nil {
		return nil, b, err
	}
	q, err := ring.OpenCQ(b.Bytes, g)
	if err != nil {
		c.freeBlock(b)
		return nil, b, command.Errorf(command.Internal, "%v", err)
	}
	return q, b, nil
}

// alloc allocates the memory of a ring.
func (c *Client) alloc(g ring.Geometry) (ring.Block, error) { return c.allocSize(g.Size()) }

func (c *Client) allocSize(n int) (ring.Block, error) {
	b, err := c.arena.Alloc(n)
	if err != nil {
		return b, asExhausted("ring memory", err)
	}
	return b, nil
}

// asExhausted converts an error of the arenas; one that names a limit of the program stays as it is.
func asExhausted(what string, err error) error {
	if limit := (*command.Error)(nil); errors.As(err, &limit) {
		return limit
	}
	return command.Errorf(command.Exhausted, "%s: %v", what, err)
}

func (c *Client) freeBlock(b ring.Block) {
	if b.Bytes != nil {
		_ = c.arena.Free(b) // cannot fail: the block was allocated
	}
}

func queueOf(h command.Handle, number uint32, g ring.Geometry, b ring.Block) command.Queue {
	return command.Queue{Handle: h, Number: number, Depth: uint32(g.Entries), Stride: uint32(g.Stride), Ring: place(b)}
}

func place(b ring.Block) command.Ring {
	return command.Ring{Arena: b.Arena, Offset: b.Offset, Size: uint64(len(b.Bytes))}
}

// completion returns a CQ of the client.
func (c *Client) completion(field string, h command.Handle) (*cq, error) {
	q := c.cqs.Get(h)
	if q == nil {
		return nil, notFound(field, h)
	}
	return q, q.adapter.usable()
}

// completionOf returns the CQ for an SRQ that has one, in a PD of the same adapter.
func (c *Client) completionOf(h, pd command.Handle) (*cq, error) {
	q, err := c.completion("CQ", h)
	if err != nil {
		return nil, err
	}
	p, err := c.domain(pd)
	if err == nil && q.adapter != p.adapter {
		err = command.Errorf(command.Invalid, "CQ and PD are of different adapters")
	}
	return q, err
}

// ResizeCQ implements command.Commands. The CQ continues in a new ring; the program first empties the old
// one.
func (c *Client) ResizeCQ(ctx context.Context, h command.Handle, depth uint32) (command.Queue, error) {
	if err := c.enterHome(ctx, c.leasesAt(h)); err != nil {
		return command.Queue{}, err
	}
	defer c.host.finish()
	q, err := c.completion("CQ", h)
	if err != nil {
		return command.Queue{}, err
	}
	if err := within("depth", depth, 1, q.adapter.limits.CQDepth); err != nil {
		return command.Queue{}, err
	}
	c.depart() // completions of what was posted before count
	q.adapter.function.Drain(c.host.now())
	if q.failed {
		return command.Queue{}, command.Errorf(command.State, "the CQ has overflowed")
	}
	if err := q.dropOld(); err != nil {
		return command.Queue{}, err
	}
	if n := q.unpolled(); n > uint64(depth) { // IBA 11.2.8.3
		return command.Queue{}, command.Errorf(command.Busy, "depth is %d, but %d completions wait to be polled", depth, n)
	}
	g := ring.CQGeometry(int(depth))
	next, block, err := c.openCQ(g)
	if err != nil {
		return command.Queue{}, err
	}
	wake := q.ring.Move(next)
	q.old = append(q.old, oldRing{q.ring, q.block})
	prior := q.block
	q.ring, q.block, q.geometry = next, block, g
	q.notify(prior, wake)
	return queueOf(h, q.ref, g, block), nil
}

// unpolled returns how many completions the program has not polled.
func (q *cq) unpolled() (n uint64) {
	count := func(r *ring.CQ) {
		k, _ := r.Unpolled() // a broken ring counts as full
		n += uint64(k)
	}
	count(q.ring)
	for _, o := range q.old {
		count(o.ring)
	}
	return n
}

// dropOld frees the rings before the last resize but one, which the program no longer uses.
func (q *cq) dropOld() error {
	for len(q.old) > 1 {
		o := q.old[0]
		if n, _ := o.ring.Unpolled(); n > 0 {
			return command.Errorf(command.Busy, "%s of an earlier resize are not polled yet", plural(n, "completion"))
		}
		q.client.freeBlock(o.block)
		q.old = q.old[1:]
	}
	return nil
}

// ModerateCQ implements command.Commands. Without Microseconds there is no moderation; without Count only
// the time limits it. What is above maxModeration is rounded down to it (WinOF 5.50, 4.9.1.1.2), so that the count
// never decides alone. It overrides the adapter's Moderation.
func (c *Client) ModerateCQ(ctx context.Context, m command.ModerateCQ) error {
	if err := c.enterHome(ctx, c.leasesAt(m.CQ)); err != nil {
		return err
	}
	defer c.host.finish()
	q, err := c.completion("CQ", m.CQ)
	if err != nil {
		return err
	}
	interval := time.Duration(min(m.Microseconds, maxModeration)) * time.Microsecond
	q.own, q.chosen = true, Pace{Count: min(m.Count, maxModeration), Interval: interval}
	if q.held > 0 {
		q.fire()
	}
	for _, r := range c.leasesAt(m.CQ)() {
		r.Want(c.host.now())
	}
	return nil
}

// push publishes completions and raises their event: one at most, because a program that the first of them
// woke may have polled them all and armed again by now, and would find nothing for another.
func (q *cq) push(now clock.Time, all []transport.Completion) {
	if q.failed {
		return
	}
	if q.times {
		made := uint64(q.client.host.now()) // now is when the turn began
		for i := range all {
			all[i].Timestamp = made
		}
	}
	all, err := q.fill(all)
	q.ring.Publish()
	due := false
	for i := range all {
		if e := &all[i].CQE; q.ring.Wants(e) && q.hold(now, q.pace(now, e.Op >= ring.CQRecv)) {
			due = true
		}
	}
	if due {
		q.fire()
	}
	if err != nil {
		q.overflow(err)
	}
}

// fill enters completions into the ring, and returns those that are in it.
func (q *cq) fill(all []transport.Completion) ([]transport.Completion, error) {
	for i := range all {
		if q.lossy && q.ring.Full() {
			return all[:i], nil
		}
		if err := q.ring.Fill(&all[i].CQE); err != nil {
			return all[:i], err
		}
	}
	return all, nil
}

// hold counts a completion towards the event, which it delays as p says; true: the event is to be raised now.
func (q *cq) hold(now clock.Time, p Pace) bool {
	q.held++
	if q.adapter.mute {
		q.due = clock.Min(q.due, now)
		q.client.host.moderate(q)
		return false
	}
	if p.Interval == 0 || p.Count > 0 && q.held >= p.Count {
		return true
	}
	q.due = clock.Min(q.due, now.Add(p.Interval))
	q.client.host.moderate(q)
	return false
}

// fire raises the event.
func (q *cq) fire() {
	q.held, q.due = 0, clock.Never
	if fired, wake := q.ring.Fire(); fired {
		q.notify(q.block, wake)
		q.channel.raise(q)
	}
}

// notify wakes those who wait on the ring in block.
func (q *cq) notify(block ring.Block, wake bool) {
	for _, w := range q.waiters {
		w.wake()
	}
	if wake && q.client.cfg.Notify != nil {
		q.client.cfg.Notify(block.Arena, block.Offset)
	}
}

// overflow ends a CQ that had no room, or whose program wrote garbage in its ring: the QPs that complete
// to it go to error (IBA 11.6.3.1).
func (q *cq) overflow(err error) {
	a := q.adapter
	q.failed = true
	a.cqOverflows++
	a.host.log.Warn("completion queue ended", "client", q.client.cfg.Name, "pid", q.client.cfg.PID, "cq", q.ref, "cause", err)
	q.notify(q.block, q.ring.Break())
	q.channel.raise(q)
	q.client.event(command.Event{Type: command.EventCQError, Object: q.handle, Adapter: a.index})
	q.client.qps.Each(func(p *qp) {
		if p.send == q || p.recv == q {
			p.fail(command.EventQPFatal)
		}
	})
	q.endShared()
}

// end ends the CQ for its waiters, with err.
func (q *cq) end(err *command.Error) {
	q.ended.Store(err)
	q.notify(q.block, q.ring.Break())
	q.channel.raise(q)
}

// moderate records a CQ that holds back an event.
func (h *Host) moderate(q *cq) {
	if !q.queued {
		q.queued = true
		h.moderated = append(h.moderated, q)
	}
	h.moderationDue = clock.Min(h.moderationDue, q.due)
}

// fireDue raises the events whose delay has ended.
func (h *Host) fireDue(now clock.Time) bool {
	if now < h.moderationDue {
		return false
	}
	next := clock.Never
	keep := h.moderated[:0]
	for _, q := range h.moderated {
		ended := q.ended.Load() != nil
		if !ended && q.held > 0 && q.due <= now && !q.adapter.mute {
			q.fire()
		}
		if ended || q.held == 0 {
			q.queued = false
			continue
		}
		next = clock.Min(next, q.due)
		keep = append(keep, q)
	}
	clear(h.moderated[len(keep):])
	h.moderated, h.moderationDue = keep, next
	return true
}

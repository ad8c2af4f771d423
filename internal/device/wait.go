package device

import (
	"context"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/internal/wait"
)

// waiter is a goroutine in WaitCQ. It watches the ring that the CQ had when it came; a resize advances the
// sequence of that one.
type waiter struct {
	host    *Host
	cq      *cq
	ring    *ring.CQ
	seq     uint32
	ch      chan struct{}
	onLinks bool // it is the poll owner
	polls   bool // between sleeps
}

// happened reports whether there is something to return. It needs no loop lock.
func (w *waiter) happened() (uint32, error, bool) {
	if err := w.cq.ended.Load(); err != nil {
		return 0, err, true
	}
	s := w.ring.Sequence()
	return s, nil, s != w.seq
}

// wake is called by the owner of the loop.
func (w *waiter) wake() {
	if w.onLinks {
		w.host.sleep.links.Wake()
		return
	}
	select {
	case w.ch <- struct{}{}:
	default:
	}
}

// drive runs one iteration of the loop inline if it is free, and reports whether there was anything to do.
func (c *Client) drive() (worked bool) {
	h := c.host
	if !h.mu.TryLock() {
		return false
	}
	h.sleep.roles.Driven()
	h.driver = c
	worked = h.step()
	h.driver = nil
	h.unlockTimed()
	return worked
}

// polled records that the program polls.
func (c *Client) polled(now clock.Time) {
	c.host.drove = now
	c.attention.Polls(now.Add(pollingTime))
}

// program returns what engines know of the client's program; nil for no client.
func (c *Client) program() *transport.Program {
	if c == nil {
		return nil
	}
	return &c.attention
}

// driveFor is drive for a waiter.
func (h *Host) driveFor(w *waiter) (worked bool) {
	if !h.mu.TryLock() {
		return false
	}
	h.sleep.roles.Driven()
	h.driver = w.cq.client
	worked = h.step()
	h.driver = nil
	w.rest()
	h.unlockTimed()
	return worked
}

// rest withdraws that the program polls, if it sleeps instead: what it sends is not to wait for its next poll. The
// caller holds the loop lock.
func (w *waiter) rest() {
	if !w.polls {
		w.host.drove = -clock.Time(pollingTime)
		w.cq.client.attention.Polls(0)
	}
}

// Poll drives the loop once if it is free, and reports whether anything was done. A program that polls its
// completion queues calls it between polls; empty is how often in a row the queue was empty. With few
// processors, those who produce the completions need this one, so after a number of calls without work it
// yields, however often the queue was empty: a program may poll several. As long as others use its yields, one
// follows each such call; otherwise they are few, because a yield to a stranger lasts as long as he likes.
func (c *Client) Poll(empty uint32) bool {
	worked := c.drive()
	p := &c.host.policy.poll
	if !worked {
		if n := c.idle.Add(1); c.host.contention.Due(p, n) {
			c.host.contention.Yield(p, n)
		}
		return false
	}
	if c.idle.Load() != 0 {
		c.idle.Store(0)
	}
	if p.At(empty) == wait.YieldAll {
		wait.YieldGoroutines() // the loop works for others, who may need this goroutine's processor
	}
	return true
}

// Spins returns how many polls of an empty CQ, each with a call of Poll, are worthwhile before a wait.
func (c *Client) Spins() int { return int(c.host.policy.poll.Most) }

// WaitCQ waits until the event sequence of the CQ's ring differs from seq, and returns the new value. To
// lose no event: read the sequence, arm the ring, poll it once more, and only then wait. The error is
// TimedOut or Canceled by ctx, NotFound when the CQ is destroyed, or Removed when the adapter is disabled.
func (c *Client) WaitCQ(ctx context.Context, handle command.Handle, seq uint32) (uint32, error) {
	return c.waitCQ(ctx, handle, seq, c.host.policy.wait)
}

// SleepCQ is WaitCQ without polling first, and between sleeps.
func (c *Client) SleepCQ(ctx context.Context, handle command.Handle, seq uint32) (uint32, error) {
	p := c.host.policy.wait
	p.Spin = 0
	return c.waitCQ(ctx, handle, seq, p)
}

func (c *Client) waitCQ(ctx context.Context, handle command.Handle, seq uint32, p wait.Policy) (uint32, error) {
	h := c.host
	h.lock()
	q := c.cqs.Get(handle)
	if q == nil {
		h.unlock()
		return 0, notFound("CQ", handle)
	}
	w := waiter{host: h, cq: q, ring: q.ring, seq: seq, polls: p.Spin > 0}
	h.unlock()
	h.sleep.roles.Enter()
	defer h.sleep.roles.Leave()
	spin := wait.Spinner{Policy: p}
	spin.Begin(h.now())
	for {
		if s, err, ok := w.happened(); ok {
			return s, err
		}
		if ctx.Err() != nil {
			return 0, command.Ended(ctx)
		}
		worked := h.driveFor(&w)
		if s, err, ok := w.happened(); ok {
			return s, err
		}
		if !worked && spin.Again(h.now, h.sleep.polls.Load()) {
			continue
		}
		if !worked {
			h.sleepFor(ctx, w)
		}
		spin.Begin(h.now())
	}
}

// RouseCQ makes those look who wait for the CQ, after the program has advanced its sequence.
func (c *Client) RouseCQ(handle command.Handle) {
	c.host.lock()
	defer c.host.unlock()
	if q := c.cqs.Get(handle); q != nil {
		for _, w := range q.waiters {
			w.wake()
		}
	}
}

// sleepFor sleeps until there may be news for w: as the poll owner if there is no other waiter, otherwise
// as a follower.
func (h *Host) sleepFor(ctx context.Context, from waiter) {
	s := &h.sleep
	w := &from
	if s.roles.Own(s.links.Wake) {
		w.onLinks = true
		h.sleepInRole(ctx, w)
		s.roles.Abdicate()
		return
	}
	w.ch = make(chan struct{}, 1)
	s.roles.Follow()
	defer s.roles.Unfollow()
	if !h.enlist(w) {
		return
	}
	select {
	case <-w.ch:
	case <-ctx.Done():
	}
	h.delist(w)
}

func (h *Host) sleepInRole(ctx context.Context, w *waiter) {
	if !h.enlist(w) {
		return
	}
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, h.sleep.links.Wake)
		defer stop()
	}
	h.sleepOnLinks()
	h.delist(w)
}

// enlist adds w to those that events of its CQ wake, unless one has already happened.
func (h *Host) enlist(w *waiter) bool {
	h.lock()
	defer h.unlock()
	if _, _, ok := w.happened(); ok {
		return false
	}
	w.rest()
	w.cq.waiters = append(w.cq.waiters, w)
	return true
}

func (h *Host) delist(w *waiter) {
	h.lock()
	defer h.unlock()
	all := w.cq.waiters
	if i := slices.Index(all, w); i >= 0 {
		w.cq.waiters = slices.Delete(all, i, i+1)
	}
}

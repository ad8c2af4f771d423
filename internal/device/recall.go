package device

import (
	"context"
	"errors"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/lease"
	"github.com/softvpi/softvpi/internal/wait"
)

// enterHome takes the loop lock for a command of c that changes what pairs work with, once all that pick
// returns are owned by the driver. The loop keeps running meanwhile.
func (c *Client) enterHome(ctx context.Context, pick func() []*lease.Lease) error {
	for pause := wait.Ask(wait.Recalled); ; time.Sleep(pause.Next()) {
		if err := c.attempt(ctx); err != nil {
			return err
		}
		if pick == nil || c.host.allHome(pick()) {
			c.host.commands++
			return nil
		}
		c.host.finish()
		if ctx.Value(promptly{}) != nil {
			return ErrWaits
		}
	}
}

// ErrWaits is the error of a Promptly command that would have to wait for a program in the middle of an
// operation on the direct path. Nothing was done.
var ErrWaits = errors.New("the command waits for a program")

type promptly struct{}

// Promptly returns a context with which a command does not wait for programs.
func Promptly(ctx context.Context) context.Context {
	return context.WithValue(ctx, promptly{}, true)
}

// Rest recalls what is delegated to the program, because another process takes its place, and waits until
// nobody is in the middle of an operation. Later lendings are the new process's.
func (c *Client) Rest(ctx context.Context) error {
	if c.delegates == nil {
		return nil
	}
	if err := c.enterHome(ctx, c.delegates.Leases); err != nil {
		return err
	}
	c.host.finish()
	return nil
}

// allHome recalls pairs and reports whether they are all owned by the driver. The caller holds the loop lock.
func (h *Host) allHome(list []*lease.Lease) bool {
	if len(list) == 0 {
		return true
	}
	now := h.now()
	home := true
	for _, r := range list {
		home = r.Recall(now) && home
	}
	return home
}

// lockHome takes the loop lock once all pairs that pick returns are owned by the driver.
func (h *Host) lockHome(pick func() []*lease.Lease) {
	for pause := wait.Ask(wait.Recalled); ; time.Sleep(pause.Next()) {
		h.lock()
		if h.allHome(pick()) {
			return
		}
		h.finish()
	}
}

// leaseOf returns the pair of a QP of the client, if it has one.
func (c *Client) leaseOf(h func() *qp) func() []*lease.Lease {
	return func() []*lease.Lease {
		if q := h(); q != nil && q.lease != nil {
			return []*lease.Lease{q.lease}
		}
		return nil
	}
}

// leasesAt returns the pairs whose QPs complete to a CQ.
func (c *Client) leasesAt(h command.Handle) func() []*lease.Lease {
	return func() []*lease.Lease {
		q := c.cqs.Get(h)
		if q == nil || c.delegates == nil {
			return nil
		}
		return c.delegates.At(q)
	}
}

// leasesOf returns the pairs with an end on an adapter.
func (h *Host) leasesOf(a *adapter) (list []*lease.Lease) {
	for _, q := range a.byNumber {
		if q.lease != nil {
			list = append(list, q.lease)
		}
	}
	return list
}

// quiesce returns when nobody is any longer in an operation that may have found a region of the client
// before it was withdrawn. The caller holds the loop lock, which is released while waiting.
func (c *Client) quiesce() {
	now := c.host.now
	list := c.delegates.Operations(now())
	for pause := wait.Ask(wait.Recalled); !list.Over(now()); {
		c.host.finish()
		time.Sleep(pause.Next())
		c.host.lock()
	}
}

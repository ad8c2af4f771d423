package device

import (
	"context"
	"errors"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/lease"
)

const (
	// A command that must wait for programs to leave their operations checks again after firstPause, then
	// after twice that, up to maxPause.
	firstPause = 10 * time.Microsecond
	maxPause   = time.Millisecond
)

// enterHome takes the baton for a command of c that changes what pairs work with, once all that pick
// returns are at home. The loop keeps running meanwhile.
func (c *Client) enterHome(ctx context.Context, pick func() []*lease.Loan) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
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
		time.Sleep(pause)
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

// Rest recalls what is lent to the program, because another process takes its place, and waits until
// nobody is in the middle of an operation. Later lendings are the new process's.
func (c *Client) Rest(ctx context.Context) error {
	if c.lends == nil {
		return nil
	}
	if err := c.enterHome(ctx, c.lends.Loans); err != nil {
		return err
	}
	c.host.finish()
	return nil
}

// allHome recalls pairs and reports whether they are all at home. The caller holds the baton.
func (h *Host) allHome(list []*lease.Loan) bool {
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

// lockHome takes the baton once all pairs that pick returns are at home.
func (h *Host) lockHome(pick func() []*lease.Loan) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		h.lock()
		if h.allHome(pick()) {
			return
		}
		h.finish()
		time.Sleep(pause)
	}
}

// loanOf returns the pair of a QP of the client, if it has one.
func (c *Client) loanOf(h func() *qp) func() []*lease.Loan {
	return func() []*lease.Loan {
		if q := h(); q != nil && q.loan != nil {
			return []*lease.Loan{q.loan}
		}
		return nil
	}
}

// loansAt returns the pairs whose QPs complete to a CQ.
func (c *Client) loansAt(h command.Handle) func() []*lease.Loan {
	return func() []*lease.Loan {
		q := c.cqs.Get(h)
		if q == nil || c.lends == nil {
			return nil
		}
		return c.lends.At(q)
	}
}

// loansOf returns the pairs with an end on an adapter.
func (h *Host) loansOf(a *adapter) (list []*lease.Loan) {
	for _, q := range a.byNumber {
		if q.loan != nil {
			list = append(list, q.loan)
		}
	}
	return list
}

// quiesce returns when nobody is any longer in an operation that may have found a region of the client
// before it was withdrawn. The caller holds the baton, which is released while waiting.
func (c *Client) quiesce() {
	now := c.host.now
	list := c.lends.Operations(now())
	for pause := firstPause; !list.Over(now()); pause = min(2*pause, maxPause) {
		c.host.finish()
		time.Sleep(pause)
		c.host.lock()
	}
}

package device

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/direct"
)

const (
	// A command that must wait for programs to leave their operations checks again after firstPause, then
	// after twice that, up to maxPause.
	firstPause = 10 * time.Microsecond
	maxPause   = time.Millisecond
)

// enterHome takes the baton for a command of c that changes what pairs work with, once all that pick
// returns are at home. The loop keeps running meanwhile.
func (c *Client) enterHome(ctx context.Context, pick func() []*loan) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		if err := c.enter(ctx); err != nil {
			return err
		}
		if pick == nil || c.host.allHome(pick()) {
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
	if !c.direct {
		return nil
	}
	if err := c.enterHome(ctx, c.allLoans); err != nil {
		return err
	}
	c.host.finish()
	return nil
}

// allHome recalls pairs and reports whether they are all at home. The caller holds the baton.
func (h *Host) allHome(list []*loan) bool {
	if len(list) == 0 {
		return true
	}
	now := h.now()
	home := true
	for _, r := range list {
		home = r.recall(now) && home
	}
	return home
}

// lockHome takes the baton once all pairs that pick returns are at home.
func (h *Host) lockHome(pick func() []*loan) {
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
func (c *Client) loanOf(h func() *qp) func() []*loan {
	return func() []*loan {
		if q := h(); q != nil && q.loan != nil {
			return []*loan{q.loan}
		}
		return nil
	}
}

// allLoans returns the pairs of the client.
func (c *Client) allLoans() []*loan { return slices.Collect(maps.Keys(c.loans)) }

// loansAt returns the pairs whose QPs complete to a CQ.
func (c *Client) loansAt(h command.Handle) func() []*loan {
	return func() (list []*loan) {
		q := c.cqs.Get(h)
		for r := range c.loans {
			for _, e := range r.ends {
				if e.send == q || e.recv == q {
					list = append(list, r)
					break
				}
			}
		}
		return list
	}
}

// loansOf returns the pairs with an end on an adapter.
func (h *Host) loansOf(a *adapter) (list []*loan) {
	for _, q := range a.byNumber {
		if q.loan != nil {
			list = append(list, q.loan)
		}
	}
	return list
}

// operation identifies an operation in which a program was seen.
type operation struct {
	loan *loan
	way  *direct.Direction
	op   uint32
}

// inside returns the operations that programs are in the middle of and that may use memory of the client.
func (c *Client) inside() (list []operation) {
	for r := range c.loans {
		if r.state == atHome {
			continue
		}
		for i := range r.record.Way {
			if op, in := r.record.Way[i].Inside(); in {
				list = append(list, operation{r, &r.record.Way[i], op})
			}
		}
	}
	return list
}

// quiesce returns when nobody is any longer in an operation that may have found a region of the client
// before it was withdrawn. The caller holds the baton, which is released while waiting.
func (c *Client) quiesce() {
	list := c.inside()
	began := c.host.now()
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		list = slices.DeleteFunc(list, func(o operation) bool {
			if o.loan.state == atHome {
				return true
			}
			op, in := o.way.Inside()
			return !in || op != o.op
		})
		if len(list) == 0 {
			return
		}
		if now := c.host.now(); now.Sub(began) > recallTime {
			for _, o := range list { // they never end by themselves: the recall ends them
				o.loan.recall(now)
			}
		}
		c.host.finish()
		time.Sleep(pause)
		c.host.lock()
	}
}

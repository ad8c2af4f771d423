package device

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
)

// LimitQP implements command.Extended. A connection with a limit uses packets: nothing else keeps it.
func (c *Client) LimitQP(ctx context.Context, l command.LimitQP) error {
	if err := c.enterHome(ctx, c.leaseOf(func() *qp { return c.qps.Get(l.QP) })); err != nil {
		return err
	}
	defer c.host.finish()
	q, err := c.pair(l.QP)
	if err != nil {
		return err
	}
	q = q.first()
	now := c.host.now()
	if err := q.adapter.engine.Limit(now, q.tq, l); err != nil {
		return asError(err)
	}
	q.reroute(now)
	return nil
}

// limited reports whether the program of one of two queue pairs that are connected limits its rate.
func limited(q, p *qp) bool { return q.tq.Limited() || p != nil && p.tq.Limited() }

package device

import (
	"context"
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/function/raw"
	"github.com/softvpi/softvpi/internal/transport"
)

// spread is what spreads the frames of its flows over raw packet queue pairs.
type spread struct {
	handle command.Handle
	a      *adapter
	s      *raw.Spread // nil once the adapter was disabled
	qs     []*qp       // each once
	flows  []*flow
}

// CreateRSS implements command.Extended.
func (c *Client) CreateRSS(ctx context.Context, r command.CreateRSS) (command.Handle, error) {
	if err := raw.CheckSpread(&r); err != nil {
		return 0, err
	}
	if err := c.enter(ctx); err != nil {
		return 0, err
	}
	defer c.host.finish()
	a, table, qs, err := c.table(r.Table[:r.Entries])
	if err != nil {
		return 0, err
	}
	o := &spread{a: a}
	if err := c.room(o.a, "RSS", c.spreads.Live(), mostFlows); err != nil {
		return 0, err
	}
	if o.s, err = raw.NewSpread(&r, table); err != nil {
		return 0, err
	}
	if o.handle, err = c.spreads.Add(o); err != nil {
		return 0, err
	}
	o.join(qs)
	return o.handle, nil
}

// table resolves the entries of a table: to queue pairs of one adapter, each of which is in qs once.
func (c *Client) table(handles []command.Handle) (a *adapter, table []*transport.QP, qs []*qp, err error) {
	for i, h := range handles {
		q, err := c.rawPair(h)
		if err != nil {
			return nil, nil, nil, err
		}
		if a == nil {
			a = q.adapter
		}
		if q.adapter != a {
			return nil, nil, nil, command.Errorf(command.Invalid, "Table[%d] is of adapter %q, want one of %q as Table[0]", i,
				q.adapter.name, a.name)
		}
		if table = append(table, q.tq); !slices.Contains(qs, q) {
			qs = append(qs, q)
		}
	}
	return a, table, qs, nil
}

// join makes these the queue pairs that the spread uses.
func (o *spread) join(qs []*qp) {
	for _, q := range o.qs {
		q.spreads = slices.DeleteFunc(q.spreads, func(s *spread) bool { return s == o })
	}
	for _, q := range qs {
		q.spreads = append(q.spreads, o)
	}
	o.qs = qs
}

// SetRSS implements command.Extended.
func (c *Client) SetRSS(ctx context.Context, r command.SetRSS) error {
	if err := raw.CheckEntries(r.Entries); err != nil {
		return err
	}
	if err := c.enter(ctx); err != nil {
		return err
	}
	defer c.host.finish()
	o := c.spreads.Get(r.RSS)
	switch {
	case o == nil:
		return notFound("RSS", r.RSS)
	case o.s == nil:
		return command.Errorf(command.Removed, "the adapter was disabled")
	}
	a, table, qs, err := c.table(r.Table[:r.Entries])
	if err != nil {
		return err
	}
	if a != o.a {
		return command.Errorf(command.Invalid, "Table[0] is of adapter %q, want one of %q", a.name, o.a.name)
	}
	o.s.SetTable(table)
	o.join(qs)
	return nil
}

// end ends the spread with its flows; its handle remains.
func (o *spread) end() {
	for len(o.flows) > 0 {
		o.flows[0].end()
	}
	o.join(nil)
	o.s = nil
}

func (c *Client) destroySpread(h command.Handle) error {
	o := c.spreads.Get(h)
	if o == nil {
		return notFound("RSS", h)
	}
	if len(o.flows) > 0 && !c.closed {
		return busy("the RSS", len(o.flows))
	}
	o.end()
	c.spreads.Remove(h)
	return nil
}

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
	o := &spread{}
	table := make([]*transport.QP, r.Entries)
	for i, h := range r.Table[:r.Entries] {
		q, err := c.rawPair(h)
		if err != nil {
			return 0, err
		}
		if o.a == nil {
			o.a = q.adapter
		}
		if q.adapter != o.a {
			return 0, command.Errorf(command.Invalid, "Table[%d] is of adapter %q, want one of %q as Table[0]", i, q.adapter.name, o.a.name)
		}
		if table[i] = q.tq; !slices.Contains(o.qs, q) {
			o.qs = append(o.qs, q)
		}
	}
	if err := c.room(o.a, "RSS", c.spreads.Live(), mostFlows); err != nil {
		return 0, err
	}
	var err error
	if o.s, err = raw.NewSpread(&r, table); err != nil {
		return 0, err
	}
	if o.handle, err = c.spreads.Add(o); err != nil {
		return 0, err
	}
	for _, q := range o.qs {
		q.spreads = append(q.spreads, o)
	}
	return o.handle, nil
}

// end ends the spread with its flows; its handle remains.
func (o *spread) end() {
	for len(o.flows) > 0 {
		o.flows[0].end()
	}
	for _, q := range o.qs {
		q.spreads = slices.DeleteFunc(q.spreads, func(s *spread) bool { return s == o })
	}
	o.s, o.qs = nil, nil
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

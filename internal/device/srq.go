package device

import (
	"context"
	"errors"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/tagmatch"
	"github.com/softvpi/softvpi/internal/transport"
)

// srq is a shared receive queue. The engines take receives from it through Next and Pending.
type srq struct {
	handle command.Handle
	number uint32
	client *Client
	pd     *pd
	ring   *ring.Recv
	block  ring.Block
	depth  uint32
	sge    uint32
	limit  uint32 // armed: raise an event when fewer are left (IBA 10.2.9.2)
	uses   int
	failed bool
	// Of an SRQ in an XRC domain: the domain, where it completes, and what the engine knows it by.
	xrcd   *xrcd
	cq     *cq
	shared *transport.SharedQueue
	tags   *tagmatch.List // if it matches tags; it then completes in cq
}

// Next implements transport.RecvQueue.
func (s *srq) Next(wr *ring.RecvWR) (bool, error) {
	ok, err := s.ring.Next(wr)
	if err != nil {
		s.fail()
		return ok, err
	}
	if s.limit != 0 {
		s.watch()
	}
	return ok, nil
}

// Pending implements transport.RecvQueue.
func (s *srq) Pending() (int, error) { return s.ring.Pending() }

// watch raises the limit event once.
func (s *srq) watch() {
	if n, err := s.ring.Pending(); err == nil && uint32(n) < s.limit {
		s.limit = 0
		s.client.event(command.Event{Type: command.EventSRQLimit, Object: s.handle, Adapter: s.pd.adapter.index})
	}
}

func (s *srq) fail() {
	if s.failed {
		return
	}
	s.failed = true
	s.client.event(command.Event{Type: command.EventSRQError, Object: s.handle, Adapter: s.pd.adapter.index})
}

// CreateSRQ implements command.Commands.
func (c *Client) CreateSRQ(ctx context.Context, r command.CreateSRQ) (command.Queue, error) {
	if err := c.enter(ctx); err != nil {
		return command.Queue{}, err
	}
	defer c.host.unlock()
	return c.createSRQ(r, nil, nil)
}

// createSRQ creates an SRQ, in the domain x if that is not nil, completing in q.
func (c *Client) createSRQ(r command.CreateSRQ, x *xrcd, q *cq) (command.Queue, error) {
	p, err := c.domain(r.PD)
	if err != nil {
		return command.Queue{}, err
	}
	a := p.adapter
	if err := within("Depth", r.Depth, 1, a.limits.SRQDepth); err != nil {
		return command.Queue{}, err
	}
	if err := within("MaxSGE", r.MaxSGE, 0, a.limits.SGE); err != nil {
		return command.Queue{}, err
	}
	if err := within("Limit", r.Limit, 0, r.Depth); err != nil {
		return command.Queue{}, err
	}
	if err := c.room(a, "SRQs", a.objects.SRQ, a.limits.SRQ); err != nil {
		return command.Queue{}, err
	}
	g := ring.RecvGeometry(int(r.Depth), int(max(r.MaxSGE, 1)))
	s := &srq{client: c, pd: p, depth: uint32(g.Entries), sge: max(r.MaxSGE, 1), limit: r.Limit}
	if s.ring, s.block, err = c.openRecv(g); err != nil {
		return command.Queue{}, err
	}
	if s.handle, err = c.srqs.Add(s); err != nil {
		c.freeBlock(s.block)
		return command.Queue{}, err
	}
	p.uses++
	a.objects.SRQ++
	if x != nil {
		s.share(x, q)
	} else {
		a.nextSRQ++
		s.number = a.nextSRQ
	}
	return queueOf(s.handle, s.number, g, s.block), nil
}

func (c *Client) openRecv(g ring.Geometry) (*ring.Recv, ring.Block, error) {
	b, err := c.alloc(g)
	if err != nil {
		return nil, b, err
	}
	q, err := ring.OpenRecv(b.Bytes, g)
	if err != nil {
		c.freeBlock(b)
		return nil, b, command.Errorf(command.Internal, "%v", err)
	}
	return q, b, nil
}

func (c *Client) shared(h command.Handle) (*srq, error) {
	s := c.srqs.Get(h)
	if s == nil {
		return nil, notFound("SRQ", h)
	}
	return s, s.pd.adapter.usable()
}

// ModifySRQ implements command.Commands.
func (c *Client) ModifySRQ(ctx context.Context, m command.ModifySRQ) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	defer c.host.unlock()
	s, err := c.shared(m.SRQ)
	if err != nil {
		return err
	}
	if err := within("Limit", m.Limit, 0, s.depth); err != nil {
		return err
	}
	s.limit = m.Limit
	if s.limit != 0 {
		s.watch()
	}
	return nil
}

// ResizeSRQ implements command.Commands. The SRQ continues in a new ring, to which the waiting receives
// have been moved.
func (c *Client) ResizeSRQ(ctx context.Context, h command.Handle, depth uint32) (command.Queue, error) {
	if err := c.enter(ctx); err != nil {
		return command.Queue{}, err
	}
	defer c.host.unlock()
	s, err := c.shared(h)
	if err != nil {
		return command.Queue{}, err
	}
	if err := within("depth", depth, max(s.limit, 1), s.pd.adapter.limits.SRQDepth); err != nil {
		return command.Queue{}, err
	}
	g := ring.RecvGeometry(int(depth), int(s.sge))
	next, block, err := c.openRecv(g)
	if err != nil {
		return command.Queue{}, err
	}
	if err := s.move(next, depth); err != nil {
		c.freeBlock(block)
		return command.Queue{}, err
	}
	c.freeBlock(s.block)
	s.ring, s.block, s.depth = next, block, uint32(g.Entries)
	return queueOf(h, s.number, g, block), nil
}

// move moves the waiting receives.
func (s *srq) move(next *ring.Recv, depth uint32) error {
	err := s.ring.Move(next)
	switch {
	case errors.Is(err, ring.ErrFull):
		n, _ := s.ring.Pending()
		return command.Errorf(command.Busy, "%s wait, depth %d does not hold them", plural(n, "receive"), depth)
	case err != nil:
		s.fail()
		return command.Errorf(command.State, "SRQ: %v", err)
	}
	return nil
}

// QuerySRQ implements command.Commands.
func (c *Client) QuerySRQ(ctx context.Context, h command.Handle) (command.SRQInfo, error) {
	if err := c.enter(ctx); err != nil {
		return command.SRQInfo{}, err
	}
	defer c.host.unlock()
	s, err := c.shared(h)
	if err != nil {
		return command.SRQInfo{}, err
	}
	n, err := s.ring.Pending()
	if err != nil {
		return command.SRQInfo{}, command.Errorf(command.State, "SRQ: %v", err)
	}
	return command.SRQInfo{Depth: s.depth, MaxSGE: s.sge, Limit: s.limit, Posted: uint32(n)}, nil
}

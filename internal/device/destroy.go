package device

import (
	"context"
	"errors"
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/handle"
	"github.com/softvpi/softvpi/internal/device/lease"
	"github.com/softvpi/softvpi/internal/memory"
)

// Destroy implements command.Commands.
func (c *Client) Destroy(ctx context.Context, kind command.Kind, h command.Handle) error {
	var pick func() []*lease.Lease
	switch {
	case kind == command.KindMemory && ctx.Value(promptly{}) != nil:
		return ErrWaits
	case kind == command.KindQP:
		pick = c.leaseOf(func() *qp { return c.qps.Get(h) })
	}
	if err := c.enterHome(ctx, pick); err != nil {
		return err
	}
	if kind == command.KindQP || kind == command.KindAH {
		c.depart()
	}
	release, err := c.destroy(kind, h)
	c.host.finish()
	if release != nil {
		release()
	}
	return err
}

// depart sends what the program has posted, as far as it can be sent at once. A hardware adapter has sent
// it by the time a command arrives, and programs rely on that: they post the last acknowledgement of a
// protocol over UD, and then exit. The caller holds the loop lock.
func (c *Client) depart() {
	h, rang := c.host, false
	for range doorbellEntries / doorbellBatch {
		if !c.drainDoorbells() {
			break
		}
		rang = true
	}
	if !rang {
		return
	}
	now := h.now()
	for _, a := range h.adapters {
		if a.enabled {
			a.transmit(now)
		}
	}
}

// destroy destroys one object. release, if not nil, must be called without the loop lock.
func (c *Client) destroy(kind command.Kind, h command.Handle) (release func(), err error) {
	switch kind {
	case command.KindPD:
		return nil, c.destroyPD(h)
	case command.KindMemory:
		return c.destroyMR(h)
	case command.KindWindow:
		return nil, c.destroyMW(h)
	case command.KindCQ:
		return nil, c.destroyCQ(h)
	case command.KindSRQ:
		return nil, c.destroySRQ(h)
	case command.KindXRCD:
		return nil, c.destroyXRCD(h)
	case command.KindFlow:
		return nil, c.destroyFlow(h)
	case command.KindRSS:
		return nil, c.destroySpread(h)
	case command.KindQP:
		return nil, c.destroyQP(h)
	case command.KindAH:
		return nil, c.destroyAH(h)
	case command.KindCM:
		return nil, c.destroyCM(h)
	case command.KindChannel:
		return nil, c.destroyChannel(h)
	case command.KindDM:
		return c.destroyDM(h)
	}
	return nil, command.Errorf(command.Invalid, "kind is %d, want 1 to %d", kind, command.KindRSS)
}

func (c *Client) destroyPD(h command.Handle) error {
	p := c.pds.Get(h)
	if p == nil {
		return notFound("PD", h)
	}
	if p.uses > 0 {
		return busy("the PD", p.uses)
	}
	c.pds.Remove(h)
	p.adapter.objects.PD--
	return nil
}

func (c *Client) destroyMR(h command.Handle) (func(), error) {
	m := c.mrs.Get(h)
	if m == nil || m.ending {
		return nil, notFound("memory region", h)
	}
	a := m.pd.adapter
	if err := c.retire(m); err != nil {
		return nil, err
	}
	if m.region != nil {
		if err := a.memory.Deregister(m.region.Key); err != nil {
			c.export(m) // it stays
			if errors.Is(err, memory.ErrBound) {
				return nil, busy("the memory region", m.region.Windows())
			}
			return nil, asError(err)
		}
		a.objects.MR--
		a.regionPages -= pagesOf(m.region)
		a.disown(m.region.Bytes)
	}
	c.mrs.Remove(h)
	m.vacate()
	m.pd.uses--
	return m.release, nil
}

// retire withdraws a region from the client's key table, if it is there, and returns when no program can be
// using it any longer. Busy: windows are bound to it. The caller holds the loop lock, which is released while
// waiting.
func (c *Client) retire(m *mr) error {
	if !m.exported {
		return nil
	}
	if m.region.Windows() > 0 {
		return busy("the memory region", m.region.Windows())
	}
	m.withdraw(c)
	m.ending = true
	c.quiesce()
	m.ending = false
	return nil
}

func (c *Client) destroyMW(h command.Handle) error {
	m := c.mws.Get(h)
	if m == nil {
		return notFound("memory window", h)
	}
	if m.window != nil {
		if err := m.pd.adapter.memory.FreeWindow(m.window.Key()); err != nil {
			return asError(err)
		}
		m.pd.adapter.objects.MW--
	}
	c.mws.Remove(h)
	m.pd.uses--
	return nil
}

func (c *Client) destroyCQ(h command.Handle) error {
	q := c.cqs.Get(h)
	if q == nil {
		return notFound("CQ", h)
	}
	if q.uses > 0 {
		return busy("the CQ", q.uses)
	}
	c.cqs.Remove(h)
	q.channel = q.channel.leave()
	q.end(command.Errorf(command.NotFound, "the CQ was destroyed"))
	q.adapter.removeCQ(q)
	c.freeBlock(q.block)
	for _, o := range q.old {
		c.freeBlock(o.block)
	}
	return nil
}

func (c *Client) destroySRQ(h command.Handle) error {
	s := c.srqs.Get(h)
	if s == nil {
		return notFound("SRQ", h)
	}
	if s.uses > 0 {
		return busy("the SRQ", s.uses)
	}
	if s.unshare(); s.tags != nil {
		s.cq.uses--
	}
	c.srqs.Remove(h)
	s.pd.uses--
	s.pd.adapter.objects.SRQ--
	c.freeBlock(s.block)
	return nil
}

func (c *Client) destroyQP(h command.Handle) error {
	q := c.qps.Get(h)
	if q == nil {
		return notFound("QP", h)
	}
	if n := len(q.flows) + len(q.spreads); n > 0 && !c.closed {
		return busy("the QP", n)
	}
	kept := q.target != nil && q.abandon()
	if q.cm != nil {
		q.cm.leave()
	}
	if !kept {
		q.unmake()
	}
	c.qps.Remove(h)
	if q.target != nil {
		return nil
	}
	q.pd.uses--
	q.send.uses--
	if q.recv != nil {
		q.recv.uses--
	}
	if q.srq != nil {
		q.srq.uses--
	}
	q.dropRecords()
	c.freeBlock(q.sendBlock)
	c.freeBlock(q.recvBlock)
	return nil
}

func (c *Client) destroyAH(h command.Handle) error {
	o := c.ahs.Get(h)
	if o == nil {
		return notFound("address handle", h)
	}
	c.ahs.Remove(h)
	o.route.Release()
	o.pd.uses--
	o.pd.adapter.objects.AH--
	return nil
}

// closeBatch is how many objects of a closing client are destroyed before others can get the loop lock.
const closeBatch = 256

// Close destroys everything that the client created: QPs go to error and are flushed, peers get a DREQ,
// and the QP numbers rest before they are reused.
func (c *Client) Close() error {
	h := c.host
	h.lock()
	if c.closed {
		h.unlock()
		return nil
	}
	c.closed = true
	if c.delegates != nil {
		c.delegates.Leave()
	}
	c.depart()
	h.unlock()
	if c.delegates != nil {
		h.lockHome(c.delegates.Leases) // peers may be in the middle of operations on its memory
		h.finish()
	}
	var releases []func()
	closeAll(h, &c.cms, func(o *cmid) { _ = c.destroyCM(o.handle) })
	closeAll(h, &c.flows, func(o *flow) { _ = c.destroyFlow(o.handle) })
	closeAll(h, &c.spreads, func(o *spread) { _ = c.destroySpread(o.handle) })
	closeAll(h, &c.qps, func(o *qp) { _ = c.destroyQP(o.handle) })
	closeAll(h, &c.ahs, func(o *ah) { _ = c.destroyAH(o.handle) })
	closeAll(h, &c.mws, func(o *mw) { _ = c.destroyMW(o.handle) })
	closeAll(h, &c.mrs, func(o *mr) {
		if r, _ := c.destroyMR(o.handle); r != nil {
			releases = append(releases, r)
		}
	})
	closeAll(h, &c.dms, func(o *dm) {
		if r, _ := c.destroyDM(o.handle); r != nil {
			releases = append(releases, r)
		}
	})
	closeAll(h, &c.srqs, func(o *srq) { _ = c.destroySRQ(o.handle) })
	closeAll(h, &c.cqs, func(o *cq) { _ = c.destroyCQ(o.handle) })
	closeAll(h, &c.xrcds, func(o *xrcd) { _ = c.destroyXRCD(o.handle) })
	closeAll(h, &c.pds, func(o *pd) { _ = c.destroyPD(o.handle) })
	closeAll(h, &c.channels, func(o *channel) { _ = c.destroyChannel(o.handle) })
	c.leave()
	for _, r := range releases {
		r()
	}
	if c.cfg.FreeArena != nil {
		for id := range c.arena.Len() {
			c.cfg.FreeArena(uint32(id), c.arena.Bytes(uint32(id)))
		}
	}
	return nil
}

// closeAll destroys all objects of a kind, a batch at a time.
func closeAll[T any](h *Host, t *handle.Table[T], destroy func(*T)) {
	for at := 0; at >= 0; {
		h.lock()
		at = t.Some(at, closeBatch, destroy)
		h.finish()
	}
}

// leave removes a client without objects from its host.
func (c *Client) leave() {
	h := c.host
	h.lock()
	for _, a := range h.adapters {
		for id := range c.arena.Len() {
			a.disown(c.arena.Bytes(uint32(id)))
		}
	}
	h.clients = slices.DeleteFunc(h.clients, func(o *Client) bool { return o == c })
	h.watched++
	h.finish()
	if c.cfg.WakeFD > 0 {
		h.evict()
	}
	c.events.Close()
}

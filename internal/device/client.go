package device

import (
	"context"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/eventqueue"
	"github.com/softvpi/softvpi/internal/device/handle"
	"github.com/softvpi/softvpi/internal/device/lease"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport"
)

const (
	doorbellEntries = 4096
	doorbellBatch   = 64
)

// Client is a program that uses the adapters. Its methods are safe for
// concurrent use.
type Client struct {
	host   *Host
	cfg    ClientConfig
	events *eventqueue.Queue
	idle   atomic.Uint32 // consecutive polls that found nothing to do

	// Under the loop lock from here on.
	arena     *ring.Arena
	doorbells *ring.Doorbells // any thread may use its producer side
	rings     []uint32        // a drained batch of doorbells
	only      *adapter        // a virtual function, which the program sees alone; nil: it sees all that are none
	tenant    string          // that function's name
	closed    bool
	told      bool // in Host.unnotified
	attention transport.Program
	delegates *lease.Program // nil: it does not take part in the direct path

	pds  handle.Table[pd]
	mrs  handle.Table[mr]
	mws  handle.Table[mw]
	cqs  handle.Table[cq]
	srqs handle.Table[srq]
	qps  handle.Table[qp]
	ahs  handle.Table[ah]
	cms  handle.Table[cmid]

	channels handle.Table[channel]
	dms      handle.Table[dm]
	xrcds    handle.Table[xrcd]
	flows    handle.Table[flow]
	spreads  handle.Table[spread]
	async    map[uint32]*channel // by adapter: channel of its asynchronous events
}

var _ command.Commands = (*Client)(nil)

// Doorbells returns the shape of the doorbell queue at offset 0 of arena 0.
func Doorbells() ring.Geometry { return ring.DoorbellGeometry(doorbellEntries) }

// NewClient adds a program. The error is Exhausted if its first arena cannot be created.
func (h *Host) NewClient(cfg ClientConfig) (*Client, error) {
	c := &Client{
		host: h, cfg: cfg, events: eventqueue.New(cfg.Account), rings: make([]uint32, doorbellBatch),
		pds: handle.New[pd](command.KindPD, cfg.owner(command.KindPD)), mrs: handle.New[mr](command.KindMemory,
			cfg.owner(command.KindMemory)),
		mws: handle.New[mw](command.KindWindow, cfg.owner(command.KindWindow)), cqs: handle.New[cq](command.KindCQ,
			cfg.owner(command.KindCQ)),
		srqs: handle.New[srq](command.KindSRQ, cfg.owner(command.KindSRQ)), qps: handle.New[qp](command.KindQP, cfg.owner(command.KindQP)),
		ahs: handle.New[ah](command.KindAH, cfg.owner(command.KindAH)), cms: handle.New[cmid](command.KindCM, cfg.owner(command.KindCM)),
		channels: handle.New[channel](command.KindChannel, cfg.owner(command.KindChannel)),
		dms:      handle.New[dm](command.KindDM, cfg.owner(command.KindDM)),
		xrcds:    handle.New[xrcd](command.KindXRCD, cfg.owner(command.KindXRCD)),
		flows:    handle.New[flow](command.KindFlow, cfg.owner(command.KindFlow)),
		spreads:  handle.New[spread](command.KindRSS, cfg.owner(command.KindRSS)),
	}
	if cfg.Direct != nil {
		var err error
		if c.delegates, err = lease.NewProgram(cfg.Direct, cfg.UID, func() int { return c.arena.Len() }); err != nil {
			return nil, command.Errorf(command.Internal, "%v", err)
		}
	}
	if cfg.MemoryPath == 0 {
		c.cfg.MemoryPath = command.MemoryMapped
	}
	backing := cfg.NewArena
	if backing == nil {
		backing = privateArena
	}
	c.arena = ring.NewArena(defaultLimits().ClientArenaMemory, backing)
	b, err := c.arena.Alloc(Doorbells().Size())
	if err != nil {
		return nil, asExhausted("arena 0", err)
	}
	if c.doorbells, err = ring.OpenDoorbells(b.Bytes, Doorbells()); err != nil {
		return nil, command.Errorf(command.Internal, "doorbells: %v", err)
	}
	h.lock()
	defer h.unlock()
	if h.closed {
		return nil, command.Errorf(command.Removed, "the host is closed")
	}
	if cfg.Function != nil {
		if c.only, err = h.function(*cfg.Function); err != nil {
			return nil, err
		}
		c.tenant = c.only.name
	}
	h.clients = append(h.clients, c)
	h.watched++
	h.sleep.wake() // it must watch the new descriptor
	return c, nil
}

// privateArena allocates ring memory in this process, aligned to 64 bytes.
func privateArena(_ uint32, size int) ([]byte, error) {
	words := make([]uint64, size/8+8)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & 63
	return b[skip : skip+size : skip+size], nil
}

// Arena returns the memory of ring arena id, nil if there is none. Arena 0 exists from the start and
// begins with the doorbell queue.
func (c *Client) Arena(id uint32) []byte {
	c.host.lock()
	defer c.host.unlock()
	return c.arena.Bytes(id)
}

// Doorbell tells the adapter that work was posted on a QP. If the loop is free it runs right here;
// otherwise its owner sees the doorbell before giving it up.
func (c *Client) Doorbell(qp command.Handle) {
	h := c.host
	if h.mu.TryLock() {
		h.ringInline(c, qp)
		h.unlockTimed()
		return
	}
	c.doorbells.Ring(uint32(qp))
	h.rung.Store(true)
	// The owner checks rung after giving up the loop lock; if it
	// did so just before the store, the loop lock is free now.
	if h.mu.TryLock() {
		h.step()
		h.unlockTimed()
	}
}

// drainDoorbells tells the engines which QPs have rung.
func (c *Client) drainDoorbells() bool {
	if !c.doorbells.Pending() {
		return false
	}
	n, scan, err := c.doorbells.Drain(c.rings)
	if err != nil {
		c.corrupt()
		return true
	}
	for _, number := range c.rings[:n] {
		c.rang(command.Handle(number))
	}
	if scan {
		c.qps.Each((*qp).doorbell)
	}
	return true
}

// rang handles one doorbell. Handle 0 means that the program's copier finished something. For an SRQ there
// is nothing to do: its receives are taken when a message arrives, and a sender that was told to wait
// retries when its RNR timer ends.
func (c *Client) rang(h command.Handle) {
	switch q := c.qps.Get(h); {
	case q != nil:
		q.doorbell()
	case h != 0 && c.srqs.Get(h) == nil:
		c.host.badDoorbells++
	}
}

// doorbell tells the engine of the QP that work was posted. A QP whose adapter was disabled has no engine.
func (q *qp) doorbell() {
	q.adapter.doorbells++
	switch {
	case q.tq == nil:
		return
	case q.tq.Carrier() == path.ByPrograms:
		q.lease.Rung(q.tq)
		return
	}
	if q.adapter.engine.Doorbell(q.tq); q.delegable {
		q.delegable = false
		q.client.host.offer(q)
	}
}

// corrupt ends the QPs of a client whose doorbell queue contains garbage: it cannot be known any more
// which of them have work.
func (c *Client) corrupt() {
	c.host.badDoorbells++
	c.host.log.Warn("client's doorbell queue is corrupt", "client", c.cfg.Name, "pid", c.cfg.PID)
	c.qps.Each(func(q *qp) { q.fail(command.EventQPFatal) })
}

// sleepDoorbells sets the sleep flag in the doorbell queue according to whether the loop sleeps. Programs
// in this process run the loop themselves.
func (c *Client) sleepDoorbells(asleep bool) bool {
	if !c.cfg.Attached {
		return true
	}
	if !asleep {
		c.doorbells.Awake()
		return true
	}
	return c.doorbells.Sleep()
}

// Events implements command.Commands.
func (c *Client) Events(ctx context.Context, out []command.Event) (int, error) {
	return c.take(ctx, c.events, out)
}

// TakeEvents is Events for ClientConfig.News: it takes the available events without waiting.
func (c *Client) TakeEvents(out []command.Event) int {
	n := c.events.TakeNow(out)
	c.claimed(out[:n])
	return n
}

// take takes events from a queue for the program.
func (c *Client) take(ctx context.Context, q *eventqueue.Queue, out []command.Event) (int, error) {
	n, err := q.Wait(ctx, out)
	if slices.ContainsFunc(out[:n], func(e command.Event) bool { return e.Type == command.EventConnectRequest }) {
		c.claim(out[:n])
	}
	return n, err
}

// event queues an event for the program, and reports whether there was room.
func (c *Client) event(e command.Event) bool {
	if c.only != nil && e.Adapter == c.only.index {
		e.Adapter = 0
	}
	put := c.queueFor(&e)
	add := put.Push
	if put == c.events && c.cfg.News != nil {
		add = put.Add
		c.host.notify(c)
	}
	ok := add(e)
	if !ok {
		c.host.eventOverflows++
	}
	return ok
}

// AdapterOf returns the index of the adapter that has an object; ok is false if none has it.
func (c *Client) AdapterOf(h command.Handle) (index uint32, ok bool) {
	c.host.lock()
	defer c.host.unlock()
	if a := c.adapterOf(h); a != nil {
		return c.indexOf(a), true
	}
	return 0, false
}

func (c *Client) adapterOf(h command.Handle) *adapter {
	if p := c.pds.Get(h); p != nil {
		return p.adapter
	}
	if m := c.mrs.Get(h); m != nil {
		return m.pd.adapter
	}
	if w := c.mws.Get(h); w != nil {
		return w.pd.adapter
	}
	if q := c.cqs.Get(h); q != nil {
		return q.adapter
	}
	if s := c.srqs.Get(h); s != nil {
		return s.pd.adapter
	}
	if q := c.qps.Get(h); q != nil {
		return q.adapter
	}
	if o := c.ahs.Get(h); o != nil {
		return o.pd.adapter
	}
	if o := c.cms.Get(h); o != nil {
		return o.adapter
	}
	if d := c.dms.Get(h); d != nil {
		return d.adapter
	}
	if x := c.xrcds.Get(h); x != nil {
		return x.domain.adapter
	}
	if o := c.flows.Get(h); o != nil {
		return o.a
	}
	if o := c.spreads.Get(h); o != nil {
		return o.a
	}
	return nil
}

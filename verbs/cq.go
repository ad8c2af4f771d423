package verbs

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// Notify selects the completions that raise an event of a CQ.
type Notify uint8

// The kinds of Notify; each includes those before it.
const (
	NotifyErrors    = Notify(ring.ArmErrors)    // completions with an error
	NotifySolicited = Notify(ring.ArmSolicited) // and those for which the peer requested a solicited event
	NotifyAny       = Notify(ring.ArmAny)
)

const (
	pollBatch     = 32    // entries converted at a time
	maxModeration = 65535 // completions, or microseconds
)

// CQ is a completion queue.
type CQ struct {
	dev    *Device
	handle command.Handle
	life   life

	mu      sync.Mutex
	closed  bool
	ring    *ring.CQ
	next    *ring.CQ // after Resize, until ring is empty
	depth   int
	idle    uint32 // empty polls in a row
	scratch [pollBatch]ring.CQE
	// driveFirst says that polls drive the adapters' loop before they look.
	driveFirst atomic.Bool
	zero       uint64 // the system's clock when that of the timestamps was 0
	made       uint64 // the last timestamp
	// streamed says that a peer on the direct path has completed receives here since the last request was
	// posted on a QP that receives here: that peer is not waiting for an answer.
	streamed atomic.Bool

	// followed are QPs whose rings hold requests that polls may carry on with.
	followed []*QP
	late     atomic.Int32 // length of followed
	turn     uint32

	users map[uint32]*QP // by number: the QPs that complete here
	last  *QP            // the one that completed last
}

// use and leave tell the queue which QPs complete in it.
func (cq *CQ) use(qp *QP) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.users == nil {
		cq.users = make(map[uint32]*QP)
	}
	cq.users[qp.number] = qp
}

func (cq *CQ) leave(qp *QP) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.users[qp.number] == qp {
		delete(cq.users, qp.number)
	}
	if cq.last == qp {
		cq.last = nil
	}
}

// settle returns the places of polled completions to their QPs, adjacent completions of one QP together.
func (cq *CQ) settle(done []ring.CQE) {
	for len(done) > 0 {
		number, side := done[0].QPN, done[0].Flags&ring.ReceiveSide
		n := 1
		for n < len(done) && done[n].QPN == number && done[n].Flags&ring.ReceiveSide == side {
			n++
		}
		done = done[n:]
		qp := cq.last
		if qp == nil || qp.number != number {
			if qp = cq.users[number]; qp == nil {
				continue
			}
			cq.last = qp
		}
		places := &qp.sends
		if side != 0 {
			places = &qp.receives
			if !cq.streamed.Load() && qp.taken() {
				cq.streamed.Store(true)
			}
		}
		places.give(int32(n))
	}
}

// vacate frees the places of one side of a QP whose requests were dropped, except those whose completions
// are still to be polled.
func (cq *CQ) vacate(qp *QP, side ring.CQFlags, places *places) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	n := 0
	if !cq.closed {
		n = cq.ring.Waiting(qp.number, side)
		if cq.next != nil {
			n += cq.next.Waiting(qp.number, side)
		}
	}
	places.keep(int32(n))
}

// CreateCQ creates a completion queue that holds at least depth completions, and is CreateCQEx without anything else.
func (d *Device) CreateCQ(depth int) (*CQ, error) { return d.CreateCQEx(CQConfig{Depth: depth}) }

// CreateCQEx creates a completion queue. One that overflows is broken, and so are the QPs that use it. It cannot overflow
// if its depth is at least the sum of the send and receive depths of its QPs: a request keeps its place in its queue
// until its completion has been polled.
func (d *Device) CreateCQEx(c CQConfig) (*CQ, error) {
	if c.Depth < 1 || c.Depth > d.limit.MaxCQDepth {
		return nil, newError("create cq", ErrInvalid, "depth is %d, want 1 to %d", c.Depth, d.limit.MaxCQDepth)
	}
	life := d.live()
	zero, err := d.zero(c)
	if err != nil {
		return nil, wrap("create cq", err)
	}
	q, err := d.host.backend.CreateCQ(d.host.ctx, command.CreateCQ{Adapter: d.index, Depth: uint32(c.Depth), Flags: c.flags()})
	if err != nil {
		return nil, wrap("create cq", err)
	}
	cq := &CQ{dev: d, handle: q.Handle, life: life, depth: int(q.Depth), zero: zero}
	if cq.ring, err = d.host.openCQ(&q); err != nil {
		_ = cq.Close()
		return nil, err
	}
	return cq, nil
}

// ringMemory returns the memory of ring r.
func (h *Host) ringMemory(r command.Ring) ([]byte, error) {
	mem := h.backend.Arena(r.Arena)
	if r.Offset > uint64(len(mem)) || r.Size > uint64(len(mem))-r.Offset {
		return nil, newError("map ring", ErrInternal, "arena %d has %d bytes, the ring needs %d at %d", r.Arena, len(mem), r.Size, r.Offset)
	}
	return mem[r.Offset : r.Offset+r.Size : r.Offset+r.Size], nil
}

func (h *Host) openCQ(q *command.Queue) (*ring.CQ, error) {
	mem, err := h.ringMemory(q.Ring)
	if err != nil {
		return nil, err
	}
	r, err := ring.OpenCQ(mem, ring.Geometry{Entries: int(q.Depth), Stride: int(q.Stride)})
	if err != nil {
		return nil, newError("map ring", ErrInternal, "%v", err)
	}
	return r, nil
}

// Device returns the adapter that the queue belongs to.
func (cq *CQ) Device() *Device { return cq.dev }

// Handle returns the number by which events name the queue.
func (cq *CQ) Handle() uint32 { return uint32(cq.handle) }

// Depth returns how many completions the queue holds.
func (cq *CQ) Depth() int {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.depth
}

// Ticket identifies the events of a CQ that follow one call of Arm.
type Ticket uint32

// Arm requests an event at the next completion of kind n and returns a ticket for Wait. A completion may
// have arrived just before: poll once more between Arm and Wait.
func (cq *CQ) Arm(n Notify) Ticket {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.closed {
		return 0 // Wait says so
	}
	r := cq.newest()
	t := Ticket(r.Sequence())
	r.Arm(ring.Arm(min(n, NotifyAny)))
	return t
}

// Wait returns when an event has been raised since the Arm that returned the ticket. Every waiter with
// that ticket returns.
func (cq *CQ) Wait(ctx context.Context, t Ticket) error {
	_, err := cq.dev.host.backend.WaitCQ(ctx, cq.handle, uint32(t))
	return wrapCtx(ctx, "wait for cq", err)
}

// Sleep is Wait without polling first, for programs that have other goroutines to run: Wait holds a processor
// for some microseconds before it sleeps.
func (cq *CQ) Sleep(ctx context.Context, t Ticket) error {
	_, err := cq.dev.host.backend.SleepCQ(ctx, cq.handle, uint32(t))
	// Something has come: a poll that drove the loop first would send its acknowledgement before the answer.
	cq.driveFirst.Store(false)
	return wrapCtx(ctx, "sleep on cq", err)
}

// Rouse makes everybody return who waits with a ticket that an earlier Arm returned.
func (cq *CQ) Rouse() {
	cq.mu.Lock()
	closed := cq.closed
	if !closed {
		cq.newest().Rouse()
	}
	cq.mu.Unlock()
	if !closed {
		cq.dev.host.backend.RouseCQ(cq.handle)
	}
}

// Next takes at least one and at most len(out) completions: it polls for some microseconds and then sleeps
// until one arrives or ctx ends.
func (cq *CQ) Next(ctx context.Context, out []WC) (int, error) {
	if len(out) == 0 {
		return 0, newError("poll", ErrInvalid, "out is empty")
	}
	for {
		for range cq.Spins() {
			if n, err := cq.Poll(out); n > 0 || err != nil {
				return n, err
			}
		}
		t := cq.Arm(NotifyAny)
		if n, err := cq.Poll(out); n > 0 || err != nil {
			return n, err
		}
		if err := cq.Wait(ctx, t); err != nil {
			return 0, err
		}
	}
}

// Pending reports whether completions of kind n are waiting to be polled.
func (cq *CQ) Pending(n Notify) bool {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.closed {
		return false
	}
	a := ring.Arm(min(n, NotifyAny))
	return cq.ring.Raises(a) || cq.next != nil && cq.next.Raises(a)
}

// Err returns why the queue is broken, nil if it is not: ErrOverflow, or ErrRemoved if the adapter was
// disabled.
func (cq *CQ) Err() error {
	cq.mu.Lock()
	closed, flags := cq.closed, uint32(0)
	if !closed {
		flags = cq.newest().Flags()
	}
	cq.mu.Unlock()
	if closed {
		return errPollClosed
	}
	if flags&ring.FlagError == 0 && !cq.life.over() {
		return nil
	}
	return cq.broken("cq")
}

// broken returns the error for a ring whose error flag is set.
func (cq *CQ) broken(op string) error {
	removed := cq.life.over()
	if !removed { // the event may still be on its way
		a, err := cq.dev.Query()
		removed = err != nil || a.RoCE == RoCENone
	}
	if removed {
		return newError(op, ErrRemoved, "")
	}
	return newError(op, ErrOverflow, "more completions came than the queue holds")
}

// Resize makes the queue hold at least depth completions. Requests may continue meanwhile; no completion
// is lost. ErrBusy if more completions are waiting to be polled than would fit.
func (cq *CQ) Resize(depth int) error {
	if depth < 1 || depth > cq.dev.limit.MaxCQDepth {
		return newError("resize cq", ErrInvalid, "depth is %d, want 1 to %d", depth, cq.dev.limit.MaxCQDepth)
	}
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.next != nil && !cq.advance() {
		return newError("resize cq", ErrBusy, "completions from before the last resize wait to be polled")
	}
	h := cq.dev.host
	q, err := h.backend.ResizeCQ(h.ctx, cq.handle, uint32(depth))
	if err != nil {
		return wrap("resize cq", err)
	}
	next, err := h.openCQ(&q)
	if err != nil {
		return err
	}
	cq.next, cq.depth = next, int(q.Depth)
	return nil
}

// Moderate limits how often the queue raises events: after count completions, or interval after the first, whichever
// comes first. More than 65,535 completions or microseconds are rounded down to that (WinOF manual 4.9.1.1.2). Zero
// values switch moderation off.
func (cq *CQ) Moderate(count int, interval time.Duration) error {
	if count < 0 {
		return newError("moderate cq", ErrInvalid, "count is %d, want 0 or more", count)
	}
	if interval < 0 {
		return newError("moderate cq", ErrInvalid, "interval is %v, want 0 or more", interval)
	}
	interval = min(interval, maxModeration*time.Microsecond) + time.Microsecond - 1 // up to whole microseconds
	h := cq.dev.host
	return wrap("moderate cq", h.backend.ModerateCQ(h.ctx, command.ModerateCQ{
		CQ: cq.handle, Count: uint32(min(count, maxModeration)), Microseconds: uint32(interval / time.Microsecond),
	}))
}

// Close destroys the queue; ErrBusy while a QP uses it.
func (cq *CQ) Close() error {
	h := cq.dev.host
	cq.setClosed(true)
	err := h.destroyed("destroy cq", h.backend.Destroy(h.ctx, command.KindCQ, cq.handle))
	if errors.Is(err, ErrBusy) {
		cq.setClosed(false)
	}
	return err
}

// setClosed keeps polls away from the ring, whose memory may be reused for another one.
func (cq *CQ) setClosed(closed bool) {
	cq.mu.Lock()
	cq.closed = closed
	cq.mu.Unlock()
}

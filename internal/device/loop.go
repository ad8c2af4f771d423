package device

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	receiveBatch  = 256
	transmitBatch = 128
	// receiveRounds and transmitRounds bound what one adapter does before the
	// next has its turn.
	receiveRounds  = 4
	transmitRounds = 4
	completeBatch  = 128
	completeRounds = 32
	eventBatch     = 32
	errorBatch     = 16
	// errorInterval is how often a link is asked for ICMP errors while packets
	// keep the loop from sleeping.
	errorInterval = 2 * time.Millisecond
	// A program that polled, or posted after it polled, within pollingTime polls.
	// Its doorbells look at the links where that was not done for receiveGap.
	pollingTime = time.Millisecond
	receiveGap  = 5 * time.Microsecond
	// Its bursts of posts are batched: doorbells that follow the one before within
	// burstGap, up to burstPosts of them.
	burstGap   = time.Microsecond
	burstPosts = 31
	// After quietTurns turns without packets the links are asked at every
	// quietSkip-th turn.
	quietTurns = 256
	quietSkip  = 8
	// retryInterval is when a link that was full is tried again.
	retryInterval = 50 * time.Microsecond
)

// batch is the memory that an adapter's turns use again and again.
type batch struct {
	in          []frame.In
	out         []frame.Out
	sent        int        // frames of out that the link took
	queued      int        // frames in out
	owing       bool       // the last turn left what is to be sent to the next
	postponed   int        // doorbells since something was sent
	rang        clock.Time // last doorbell of a program in this process
	received    clock.Time // last look at the links
	unsettled   bool       // connections broke since the CM was asked
	quiet       uint32     // turns since packets came or went
	retry       clock.Time
	completions []transport.Completion
	events      []transport.Event
	errors      []link.Unreachable
	errorsDue   clock.Time
	gsi         gsiBatch
	deferred    deferredBatch
}

func (b *batch) init() {
	b.in = make([]frame.In, receiveBatch)
	b.out = make([]frame.Out, transmitBatch)
	b.completions = make([]transport.Completion, completeBatch)
	b.events = make([]transport.Event, eventBatch)
	b.errors = make([]link.Unreachable, errorBatch)
	b.gsi.init()
	b.deferred.init()
}

// blocked reports that the link has not taken all frames.
func (b *batch) blocked() bool { return b.sent < b.queued }

// step is one iteration of the loop: every adapter has its turn. The caller
// holds the baton. It reports whether there was anything to do.
func (h *Host) step() bool {
	now := h.now()
	worked := false
	if h.inline {
		h.drove = now
	}
	if h.sleep.slept.Load() {
		h.sleep.slept.Store(false)
		for _, a := range h.adapters {
			a.quiet = 0
		}
	}
	if h.flagged && !h.sleep.asleep.Load() {
		h.awake()
	}
	if h.rung.Load() {
		h.rung.Store(false)
		worked = true
		for _, a := range h.adapters {
			a.quiet = 0
		}
	}
	for _, c := range h.clients {
		if c.drainDoorbells() {
			worked = true
		}
	}
	for _, a := range h.adapters {
		if a.enabled && a.step(now) {
			worked = true
		}
	}
	if h.fireDue(now) {
		worked = true
	}
	return worked
}

// ringInline runs what a doorbell of a program in this process asks for: its QP
// sends now, without a look at what has arrived.
func (h *Host) ringInline(c *Client, handle command.Handle) {
	q := c.qps.get(handle)
	if q == nil || q.tq == nil {
		h.badDoorbells++
		return
	}
	a := q.adapter
	a.engine.Doorbell(q.tq)
	now := h.now()
	if now.Sub(h.drove) < pollingTime {
		// The program polls: its doorbells drive the loop as well, or it would
		// depend on the background goroutine whenever it has completions enough.
		h.drove = now
		h.sleep.drives.Add(1)
		if a.postpone(now) {
			return
		}
		if now.Sub(a.received) > receiveGap {
			h.inline = true
			a.step(now)
			h.inline = false
			a.rang = h.now() // sending took its time
			return
		}
	}
	a.owing, a.postponed = false, 0
	a.transmit(now)
	a.rang = h.now() // sending took its time
	if !q.tq.Local() {
		a.complete(now)
		return
	}
	for _, o := range h.adapters { // the peer has completions too
		if o.enabled {
			o.complete(now)
		}
	}
}

// postpone reports whether work that was just posted waits for more: a program
// that polls, and posts one request right after another, has its packets sent in
// batches, by the next poll at the latest.
func (a *adapter) postpone(now clock.Time) bool {
	last := a.rang
	a.rang = now
	if now.Sub(last) > burstGap || a.postponed >= burstPosts {
		return false
	}
	a.postponed++
	a.owing = true
	a.retry = now.Add(retryInterval)
	return true
}

// deadline is when the loop must run next by itself.
func (h *Host) deadline() clock.Time {
	due := h.moderationDue
	for _, a := range h.adapters {
		if a.enabled {
			due = clock.Min(due, a.deadline())
		}
	}
	return due
}

// doorbells reports whether a doorbell waits. It says so in the queues of
// attached programs that the loop sleeps, first.
func (h *Host) doorbells() bool {
	for _, c := range h.clients {
		if !c.sleepDoorbells(true) {
			return true
		}
	}
	return false
}

// step is one turn of an adapter.
func (a *adapter) step(now clock.Time) bool {
	worked := a.receive(now)
	if a.engine.Deadline() <= now {
		a.engine.Advance(now)
		worked = true
	}
	if a.cm.Deadline() <= now {
		a.cm.Advance(now)
		worked = true
	}
	if now >= a.errorsDue {
		a.linkErrors(now)
	}
	if a.copies(now) {
		worked = true
	}
	if a.manage(now) {
		worked = true
	}
	completed := a.complete(now)
	if completed && a.host.inline && !a.owing {
		// The program that runs this will answer, most likely: what is to be sent
		// goes with its answer, or with the next turn.
		a.owing = true
		a.retry = now.Add(retryInterval)
		return true
	}
	a.owing, a.postponed = false, 0
	if a.transmit(now) {
		completed = true
		a.complete(now)
	}
	worked = worked || completed
	if len(a.joining) > 0 && now >= a.joinDue {
		a.joinAgain(now)
	}
	return worked
}

// receive hands what the links have to the engine.
//
// Links that have been quiet for many turns are asked at some turns only: it
// costs a system call, and whoever sleeps is woken by them in any case.
func (a *adapter) receive(now clock.Time) bool {
	if a.quiet++; a.quiet > quietTurns && a.quiet%quietSkip != 0 {
		return false
	}
	a.received = now
	worked := false
	for _, p := range a.plugs {
		if p.link == nil {
			continue
		}
		for range receiveRounds {
			n, err := p.link.Receive(a.in)
			if err != nil {
				a.linkFailed(p, err)
			}
			if n == 0 {
				break
			}
			worked = true
			a.quiet = 0
			if n = p.encap.Open(a.in[:n]); n > 0 {
				a.engine.Receive(now, a.in[:n])
			}
			if n < len(a.in) {
				break
			}
		}
	}
	return worked
}

// transmit hands what the engine has to the links, in order. What a link does
// not take waits for the next turn, and the engine with it.
func (a *adapter) transmit(now clock.Time) bool {
	worked := false
	for range transmitRounds {
		if a.blocked() && !a.flush(now) {
			return true
		}
		pending := a.engine.Pending() // messages on the local path move without a frame
		n := a.engine.Transmit(now, a.out)
		if n == 0 {
			return worked || pending
		}
		worked = true
		a.quiet = 0 // there will be answers
		a.sent, a.queued = 0, n
		a.answerFirst()
		a.seal()
		if !a.flush(now) {
			return true
		}
	}
	return worked
}

// answerFirst lets the one request of a small batch overtake the acknowledgement
// before it: the peer's program waits for the request, and only its QP for the
// acknowledgement. The two have PSNs of different directions (IBA 9.7.1).
func (a *adapter) answerFirst() {
	if a.queued != 2 {
		return
	}
	first, second := ib.BTH(a.out[0].Head[frame.HeadRoom:]).Opcode(), ib.BTH(a.out[1].Head[frame.HeadRoom:]).Opcode()
	if first == ib.RCAcknowledge && second <= ib.RCWriteOnlyImmediate {
		a.out[0], a.out[1] = a.out[1], a.out[0]
	}
}

// seal puts the outer headers around the queued frames.
func (a *adapter) seal() {
	if len(a.plugs) == 1 {
		a.plugs[0].encap.Seal(a.out[:a.queued])
		return
	}
	for from := 0; from < a.queued; {
		p, to := a.run(from)
		if p != nil {
			p.encap.Seal(a.out[from:to])
		}
		from = to
	}
}

// run returns the plug that frame from goes through, and where the run of frames
// for it ends.
func (a *adapter) run(from int) (*plug, int) {
	src := a.out[from].Route.Src
	to := from + 1
	for route := a.out[from].Route; to < a.queued; to++ {
		if r := a.out[to].Route; r != route && r.Src != src {
			break
		}
	}
	return a.plugFor(src), to
}

// flush sends queued frames; false: a link is full.
func (a *adapter) flush(now clock.Time) bool {
	for a.sent < a.queued {
		p, to := a.plugs[0], a.queued
		if len(a.plugs) > 1 {
			p, to = a.run(a.sent)
		}
		if p == nil || p.link == nil { // the address is gone: as if the network had lost them
			a.sent = to
			continue
		}
		n, err := p.link.Send(a.out[a.sent:to])
		a.sent += n
		if err != nil {
			a.linkFailed(p, err)
		}
		if a.sent < to {
			a.retry = now.Add(retryInterval)
			return false
		}
	}
	return true
}

// complete writes completions to their CQs and tells programs of events.
func (a *adapter) complete(now clock.Time) bool {
	worked := a.drainCompletions(now)
	for a.passEvents(now) {
		worked = true
	}
	if a.unsettled { // the CM has something to say about connections that broke
		a.unsettled = false
		a.manageOut(now)
		a.drainCompletions(now)
	}
	return worked
}

// drainCompletions empties the engine's completions, up to a bound: a hostile program
// could make more of them for ever, posting to a QP in error.
func (a *adapter) drainCompletions(now clock.Time) bool {
	for round := range completeRounds {
		n := a.engine.Completions(a.completions)
		for i := range a.completions[:n] {
			c := &a.completions[i]
			if q := a.cqs[c.CQ]; q != nil {
				q.push(now, &c.CQE)
			}
			if c.Status != ring.Success && c.Status != ring.WRFlush {
				a.broken(now, c.QPN)
			}
		}
		if n < len(a.completions) {
			return round > 0 || n > 0
		}
	}
	return true
}

// passEvents passes a batch of the engine's events on.
func (a *adapter) passEvents(now clock.Time) bool {
	n := a.engine.Events(a.events)
	for i := range a.events[:n] {
		a.event(now, &a.events[i])
	}
	return n > 0
}

// broken looks after a QP one of whose requests failed: where that was the end of
// its connection, the CM hears of it.
func (a *adapter) broken(now clock.Time, qpn uint32) {
	if q := a.byNumber[qpn]; q != nil && q.cm != nil && q.tq != nil && q.tq.State() == command.Err {
		q.cm.lost(now)
		a.unsettled = true
	}
}

// event passes an asynchronous event of the engine on.
func (a *adapter) event(now clock.Time, e *transport.Event) {
	q := a.byNumber[e.QPN]
	if q == nil || q.tq != e.QP {
		return
	}
	switch e.Type {
	case command.EventCommunicationEstablished:
		if q.cm != nil { // the CM's own business where it moves the QP
			a.unsettled = true
			_ = a.cm.Established(now, q.cm.id)
			return
		}
	case command.EventQPFatal, command.EventQPRequestError, command.EventQPAccessError:
		if q.cm != nil {
			q.cm.lost(now)
			a.unsettled = true
		}
	}
	q.client.event(command.Event{Type: e.Type, Object: q.handle, Context: q.context, Adapter: a.index})
}

// linkErrors tells the engines what destinations answered with ICMP errors.
func (a *adapter) linkErrors(now clock.Time) {
	a.errorsDue = now.Add(errorInterval)
	for _, p := range a.plugs {
		if p.link == nil {
			continue
		}
		n := p.link.Errors(a.errors)
		for _, e := range a.errors[:n] {
			a.unreachable(now, e)
		}
	}
}

// linkFailed is told of errors of a link as a whole.
func (a *adapter) linkFailed(p *plug, err error) {
	if !p.failed {
		p.failed = true
		a.host.log.Error("link failed", "adapter", a.name, "address", p.addr, "cause", err)
	}
}

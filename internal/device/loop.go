package device

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/device/gsi"
	"github.com/softvpi/softvpi/internal/device/links"
	"github.com/softvpi/softvpi/internal/device/remotecopy"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/transport"
)

const (
	receiveBatch  = 256
	transmitBatch = 128
	// receiveMost packets and transmitRounds limit what one adapter does before the next has its turn.
	receiveMost    = 1024
	transmitRounds = 4
	completeBatch  = 128
	completeRounds = 32
	eventBatch     = 32
	errorBatch     = 16
	// errorInterval is how often a link is checked for ICMP errors while packets keep the loop from
	// sleeping.
	errorInterval = 2 * time.Millisecond
	// A program that polled, or posted after polling, within pollingTime counts as polling. Its doorbells
	// check the links if that was not done for receiveGap.
	pollingTime = time.Millisecond
	receiveGap  = 5 * time.Microsecond
	// Its bursts of posts are batched: doorbells that follow the previous one within burstGap, up to
	// burstPosts of them for one queue pair, and in total as many as one Transmit takes.
	burstGap   = time.Microsecond
	burstPosts = 61
	// The time that sending a single packet takes is measured for one packet in departureLooks. It counts as departureMost
	// at most, because the program may have lost its processor meanwhile.
	departureLooks = 16
	departureMost  = 10 * time.Microsecond
	// After quietTurns turns without packets the links are checked only in every quietSkip-th turn.
	quietTurns = 256
	quietSkip  = 8
	// fewPackets are a message and an acknowledgement, not a stream.
	fewPackets = 2
	// retryInterval is after which time a full link is tried again.
	retryInterval = 50 * time.Microsecond
)

// batch is the memory that an adapter's turns reuse.
type batch struct {
	in          []frame.In
	next        frame.Next
	out         []frame.Out
	sent        int        // frames of out that the link has accepted
	queued      int        // frames in out
	owing       bool       // the last turn left something to be sent to the next
	arrived     int        // packets that arrived in this turn
	left        bool       // packets were sent in this turn
	gathering   []*qp      // those whose posts wait for more
	rang        clock.Time // last doorbell of a program in this process, when what it sent had left
	departing   departing
	received    clock.Time // last look at the links
	unsettled   bool       // connections broke since the CM was last asked
	quiet       uint32     // turns since packets were received or sent
	retry       clock.Time
	completions []transport.Completion
	events      []transport.Event
	errors      []link.Unreachable
	errorsDue   clock.Time
	refused     [8]link.Violation
	gsi         gsi.QP1
	deferred    remotecopy.Copies
}

// departing estimates how long sending a single packet takes.
type departing struct {
	took  time.Duration // the last one measured
	looks uint32        // number of estimates and measurements
}

func (b *batch) init() {
	b.in = make([]frame.In, receiveBatch)
	b.out = make([]frame.Out, transmitBatch)
	b.completions = make([]transport.Completion, completeBatch)
	b.events = make([]transport.Event, eventBatch)
	b.errors = make([]link.Unreachable, errorBatch)
	b.deferred.Init()
}

// blocked reports whether the link has not accepted all frames.
func (b *batch) blocked() bool { return b.sent < b.queued }

// step is one iteration of the loop: every adapter has its turn. It reports whether there was anything to
// do. The caller holds the loop lock.
func (h *Host) step() bool {
	now := h.now()
	worked := false
	if h.inline {
		h.drove = now
	}
	if h.woken = h.sleep.slept.Load(); h.woken {
		h.sleep.slept.Store(false)
		for _, a := range h.adapters {
			a.quiet = 0
		}
	}
	if h.flagged && !h.sleep.asleep.Load() {
		h.awake()
	}
	if h.rung.Load() && !h.commanded { // whoever rang needs a turn that also checks the links
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
	polls, arrived, sender := false, 0, 0
	for i, a := range h.adapters {
		if !a.enabled {
			continue
		}
		if a.step(now) {
			worked = true
		}
		if arrived += a.arrived; a.left {
			sender = i
		}
		if a.cfg.Polling.On && a.poller.round(&a.cfg.Polling, a.arrived) {
			polls = true
		}
	}
	h.arrived = arrived
	if polls != h.polled {
		h.polled = polls
		h.sleep.polls.Store(polls)
	}
	if arrived == 0 {
		for _, a := range h.adapters {
			if a.engine.Quiet(now) && a.transmit(now) {
				worked = true
			}
		}
	}
	// What an adapter sent may have reached one that has already had its turn. The clock is read again only if handling
	// the packets has taken a noticeable time.
	for _, a := range h.adapters[:sender] {
		at := now
		if arrived > fewPackets {
			at = h.now()
		}
		if a.enabled && a.step(at) {
			worked = true
		}
	}
	h.manageAll(now)
	h.completePeers(now)
	if h.fireDue(now) {
		worked = true
	}
	if h.leases.Step(now) {
		worked = true
	}
	h.found = worked || h.commanded && h.found
	return worked
}

// completePeers delivers what messages on the local path left in the engines of adapters that had already
// had their turn.
func (h *Host) completePeers(now clock.Time) {
	for _, a := range h.adapters {
		if a.enabled && a.engine.Undelivered() {
			a.complete(now)
		}
	}
}

// deadline returns when the loop must next run by itself.
func (h *Host) deadline() clock.Time {
	due := clock.Min(h.moderationDue, h.leases.Deadline())
	for _, a := range h.adapters {
		if a.enabled {
			due = clock.Min(due, a.deadline())
		}
	}
	return due
}

// doorbells reports whether a doorbell waits. First it sets the sleep flags in the queues of attached
// programs.
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
	a.left = false
	worked := a.receive(now)
	if !worked && a.idle(now) {
		return false
	}
	if a.ib != nil && a.followPort(now) {
		worked = true
	}
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
	if a.deferred.Move(now, a.engine) {
		worked = true
	}
	if a.gsi.Step(now) {
		worked = true
	}
	completed := a.complete(now)
	if a.host.inline && completed && !a.owing {
		// The program that runs this will most likely answer: what
		// is to be sent goes with its answer, or with a later turn.
		a.owing = true
		a.retry = now.Add(retryInterval)
		return true
	}
	a.release()
	if a.engine.Attend(a.attendance(now)); !a.blocked() && a.engine.Defers(now) {
		return true
	}
	if a.transmit(now) {
		if completed = true; a.engine.Undelivered() || a.unsettled {
			a.complete(now)
		}
	}
	worked = worked || completed
	if len(a.joining) > 0 && now >= a.joinDue {
		a.joinAgain(now)
	}
	return worked
}

// idle reports whether a turn in which nothing arrived has nothing else to do, like most turns of a
// program that waits.
func (a *adapter) idle(now clock.Time) bool {
	return a.ib == nil && !a.owing && !a.blocked() && !a.unsettled && len(a.gathering) == 0 && len(a.joining) == 0 &&
		!a.gsi.Waiting() && a.deferred.Idle() && now < a.errorsDue && a.engine.Idle(now) && a.cm.Idle(now)
}

// receive passes what the links have received to the engine.
//
// Links that have been quiet for many turns are checked only in some turns: it costs a system call, and a
// sleeping loop is woken by them in any case, as is a program that drives the loop between two commands.
func (a *adapter) receive(now clock.Time) bool {
	a.arrived = 0
	if a.host.commanded {
		return false
	}
	if a.quiet++; a.quiet > quietTurns && a.quiet%quietSkip != 0 {
		return false
	}
	a.received = now
	worked, arrived := false, 0
	for _, p := range a.links.All() {
		if p.Link == nil {
			continue
		}
		for got := 0; got < receiveMost; {
			n, err := p.Receive(a.in)
			if err != nil {
				p.Failed(err)
			}
			if n == 0 {
				break
			}
			worked = true
			a.quiet = 0
			got += n
			arrived += n
			full := n == len(a.in)
			a.rings.received(n, len(a.in), !a.host.woken)
			a.take(now, p, a.in[:n])
			if !full {
				break
			}
		}
	}
	a.arrived = arrived
	return worked
}

// take opens packets and passes them to the engine, in parts: up to the first one of a long message, or
// those of one queue pair. After each part it is known where the payload of the next packets goes, and
// encap copies it there.
func (a *adapter) take(now clock.Time, p *links.Address, in []frame.In) {
	p.Encap.Tick(now)
	for len(in) > 0 {
		n, next := len(in), (*frame.Next)(nil)
		if n > transport.LeadMost {
			n = transport.Lead(in)
			if a.engine.Next(&a.next, &in[0]) {
				next = &a.next
			}
		}
		if good := p.Encap.OpenNext(in[:n], next); good > 0 {
			a.engine.Receive(now, in[:good])
		}
		in = in[n:]
	}
	a.next.Memory = nil
}

// linkErrors passes the ICMP errors of destinations to the engines.
func (a *adapter) linkErrors(now clock.Time) {
	a.errorsDue = now.Add(errorInterval)
	for _, p := range a.links.All() {
		if p.Link == nil {
			continue
		}
		n := p.Link.Errors(a.errors)
		for _, e := range a.errors[:n] {
			a.unreachable(now, e)
		}
	}
}

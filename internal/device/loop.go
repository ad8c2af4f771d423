package device

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

const (
	receiveBatch  = 256
	transmitBatch = 128
	// receiveMost packets and transmitRounds limit what one adapter does before the next has its turn.
	receiveMost    = 1024
	transmitRounds = 4
	errorBatch     = 16
	// errorInterval is how often a link is checked for ICMP errors while packets keep the loop from
	// sleeping.
	errorInterval = 2 * time.Millisecond
	// asleepInterval is how often functions that sleep hear what the others hear each errorInterval, unless a wire has changed.
	asleepInterval = 50 * time.Millisecond
	// lightInterval is how often the system is asked whether an interface that is down has come back, while something waits for it.
	lightInterval = 50 * time.Millisecond
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
	// idleTurns is how many turns without anything to do count as one for functions that are to fall asleep: looking costs a little.
	idleTurns = 16
	// fewPackets are a message and an acknowledgement, not a stream.
	fewPackets = 2
	// retryInterval is after which time a full link is tried again.
	retryInterval = 50 * time.Microsecond
)

// bursts are the posts of programs in this process that wait for more of them.
type bursts struct {
	gathering []*qp      // those whose posts wait
	gatherDue clock.Time // until when
	rang      clock.Time // last doorbell of a program in this process, when what it sent had left
	departing departing
}

// departing estimates how long sending a single packet takes.
type departing struct {
	took  time.Duration // the last one measured
	looks uint32        // number of estimates and measurements
}

// step is one iteration of the loop: every port has its turn. It reports whether there was anything to
// do. The caller holds the loop lock.
func (h *Host) step() bool {
	now := h.now()
	worked := false
	if h.driver != nil {
		h.driver.polled(now)
	}
	if h.woken = h.sleep.slept.Load(); h.woken {
		h.sleep.slept.Store(false)
		h.look()
	}
	if h.flagged && !h.sleep.asleep.Load() {
		h.awake()
	}
	if h.rung.Load() && !h.commanded { // whoever rang needs a turn that also checks the links
		h.rung.Store(false)
		worked = true
		h.look()
	}
	for _, c := range h.clients {
		if c.drainDoorbells() {
			worked = true
		}
	}
	polls, arrived, sender := false, 0, 0
	for i, p := range h.ports {
		if !p.enabled() {
			continue
		}
		if h.turn(p, now) {
			worked = true
		}
		if arrived += p.arrived; p.left {
			sender = i
		}
		polls = p.polls() || polls
	}
	h.arrived = arrived
	if polls != h.polled {
		h.polled = polls
		h.sleep.polls.Store(polls)
	}
	if arrived == 0 {
		for _, p := range h.ports {
			for i := 0; i < len(p.awake) && p.orderly(); i++ {
				if p.awake[i].engine.Quiet(now) && p.transmit(now) {
					worked = true
				}
			}
		}
	}
	// What an adapter sent may have reached one that has already had its turn. The clock is read again only if handling
	// the packets has taken a noticeable time.
	for _, p := range h.ports[:sender] {
		at := now
		if arrived > fewPackets {
			at = h.now()
		}
		if p.enabled() && h.turn(p, at) {
			worked = true
		}
	}
	h.manageAll(now)
	if h.exchange(now) {
		worked = true
	}
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

// completePeers delivers what messages on the local path left in the engines after their turns.
func (h *Host) completePeers(now clock.Time) {
	for _, p := range h.ports {
		for i := 0; i < len(p.awake) && p.orderly(); i++ {
			if a := p.awake[i]; a.enabled && a.engine.Undelivered() {
				a.function.Complete(now)
			}
		}
	}
}

// look makes the ports check their links in the next turn.
func (h *Host) look() {
	for _, p := range h.ports {
		p.quiet = 0
	}
}

// deadline returns when the loop must next run by itself.
func (h *Host) deadline() clock.Time {
	due := clock.Min(h.moderationDue, h.leases.Deadline())
	for _, p := range h.ports {
		if p.enabled() {
			due = clock.Min(due, p.deadline())
		}
	}
	for _, p := range h.ports {
		for _, a := range p.awake {
			if !p.broken && a.engine.PendingLocal() {
				return 0
			}
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

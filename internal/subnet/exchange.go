package subnet

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// work is a request to make: what to get or set at which port.
type work struct {
	at     int32 // index of the port in the current subnet
	mod    uint32
	attr   uint16
	set    bool
	beyond bool // it is for the node behind the port, which is not known yet
	kind   uint8
}

// exchange manages requests in progress: at most a window of them, each with a timeout and retries.
type exchange struct {
	todo    []work // in order; those before head have been taken
	head    int
	slots   []slot
	free    []uint16
	due     []due // in order of time: all timeouts are equally long
	dueHead int
	retry   []uint32 // transactions to retransmit
	seq     uint32
	timeout time.Duration
	retries int

	Sent, Retried, TimedOut uint64
}

type slot struct {
	w     work
	seq   uint32
	tries int
	busy  bool
	pkt   Packet
}

type due struct {
	at   clock.Time
	seq  uint32
	try  uint16
	slot uint16
}

const slotBits = 12

func newExchange(window, retries int, timeout time.Duration) exchange {
	x := exchange{slots: make([]slot, window), timeout: timeout, retries: retries}
	for i := range x.slots {
		x.free = append(x.free, uint16(window-1-i))
	}
	return x
}

func (x *exchange) push(w work) { x.todo = append(x.todo, w) }

// quiet reports whether nothing is in progress and nothing waits.
func (x *exchange) quiet() bool { return len(x.free) == len(x.slots) && x.head == len(x.todo) }

func (x *exchange) waiting() int { return len(x.todo) - x.head }

// clear drops everything that waits or is in progress; late answers will match nothing.
func (x *exchange) clear() {
	x.todo, x.head, x.due, x.dueHead, x.retry, x.free = x.todo[:0], 0, x.due[:0], 0, x.retry[:0], x.free[:0]
	for i := range x.slots {
		x.slots[i].busy = false
		x.free = append(x.free, uint16(i))
	}
}

// take returns the next request, in a slot of its own; nil: none waits or the window is full.
func (x *exchange) take() *slot {
	if x.head == len(x.todo) || len(x.free) == 0 {
		return nil
	}
	i := x.free[len(x.free)-1]
	x.free = x.free[:len(x.free)-1]
	s := &x.slots[i]
	x.seq = (x.seq + 1) & (1<<(32-slotBits) - 1)
	*s = slot{w: x.todo[x.head], seq: x.seq<<slotBits | uint32(i), busy: true}
	if x.head++; x.head == len(x.todo) {
		x.todo, x.head = x.todo[:0], 0
	} else if x.head >= 4096 && x.head*2 > len(x.todo) {
		x.todo = x.todo[:copy(x.todo, x.todo[x.head:])]
		x.head = 0
	}
	return s
}

// drop frees the slot of a request that was not sent after all.
func (x *exchange) drop(s *slot) {
	s.busy = false
	x.free = append(x.free, uint16(s.seq&(1<<slotBits-1)))
}

// again returns a request that timed out and is to be retransmitted, or nil.
func (x *exchange) again() *slot {
	for len(x.retry) > 0 {
		transaction := x.retry[0]
		x.retry = x.retry[1:]
		if s := &x.slots[transaction&(1<<slotBits-1)]; s.busy && s.seq == transaction {
			return s
		}
	}
	return nil
}

// sent starts the timeout of a request.
func (x *exchange) sent(s *slot, now clock.Time) {
	x.Sent++
	if x.dueHead == len(x.due) {
		x.due, x.dueHead = x.due[:0], 0
	} else if x.dueHead >= 4096 {
		x.due = x.due[:copy(x.due, x.due[x.dueHead:])]
		x.dueHead = 0
	}
	x.due = append(x.due, due{now.Add(x.timeout), s.seq, uint16(s.tries), uint16(s.seq & (1<<slotBits - 1))})
}

// answered finds the request of a transaction and frees its slot.
func (x *exchange) answered(transaction uint32) (w work, pkt *Packet, ok bool) {
	i := int(transaction & (1<<slotBits - 1))
	if i >= len(x.slots) || !x.slots[i].busy || x.slots[i].seq != transaction {
		return work{}, nil, false
	}
	x.slots[i].busy = false
	x.free = append(x.free, uint16(i))
	return x.slots[i].w, &x.slots[i].pkt, true
}

// lost handles a request without an answer: it is retransmitted or, if gaveUp, given up and returned as w.
func (x *exchange) lost(transaction uint32) (w work, gaveUp bool) {
	i := int(transaction & (1<<slotBits - 1))
	if i >= len(x.slots) || !x.slots[i].busy || x.slots[i].seq != transaction {
		return work{}, false
	}
	s := &x.slots[i]
	if s.tries < x.retries {
		s.tries++
		x.Retried++
		x.retry = append(x.retry, transaction)
		return work{}, false
	}
	x.TimedOut++
	w, _, _ = x.answered(transaction)
	return w, true
}

// expired returns the next transaction that has timed out.
func (x *exchange) expired(now clock.Time) (transaction uint32, ok bool) {
	for x.dueHead < len(x.due) {
		d := x.due[x.dueHead]
		s := &x.slots[d.slot]
		if !s.busy || s.seq != d.seq || s.tries != int(d.try) {
			x.dueHead++
			continue
		}
		if now.Before(d.at) {
			return 0, false
		}
		x.dueHead++
		return d.seq, true
	}
	return 0, false
}

// deadline returns the time of the next timeout.
func (x *exchange) deadline() clock.Time {
	for x.dueHead < len(x.due) {
		d := x.due[x.dueHead]
		if s := &x.slots[d.slot]; s.busy && s.seq == d.seq && s.tries == int(d.try) {
			return d.at
		}
		x.dueHead++
	}
	return clock.Never
}

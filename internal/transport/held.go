package transport

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// heldTime is how long the responder holds the ACK of messages that request none: one ACK then covers all that
	// arrive meanwhile, and any that is requested covers them too. A requester has to learn of them all the same,
	// and probes if it does not (probeFloor, which is longer).
	heldTime = time.Millisecond
	// busyTime is how recently a queue pair must have sent for its next message not to request an ACK. The
	// responder's timer for a held ACK wakes it up, which only pays if the timer covers several messages.
	busyTime = heldTime
	// unaskedMost is the number of consecutive messages that request no ACK. Until they are acknowledged they take
	// part of the send queue and of the window.
	unaskedMost = 15
	// unaskedTimeout is the least ACK timeout, as an exponent of 4.096 us, that is long beside heldTime: 8.4 ms.
	unaskedTimeout = 11
	// askAgain is for how many messages ACKs are requested after a probe in vain: the responder may be one that
	// sends none unless asked, as IBA 9.7.5.1.2 allows.
	askAgain = 1024
)

// asks reports whether r, a message of one packet, requests an ACK. The requester is free to choose (IBA 9.7.3.1.2):
// it needs one when somebody waits for the completion, or when what is in flight fills half of the window. The
// messages of a busy queue pair between these are acknowledged by the next ACK, or by one that the responder holds.
func (q *QP) asks(r *request) bool {
	s := q.req
	switch {
	case s.askMore > 0:
		s.askMore--
		return true
	case q.signalAll, r.wr.Flags&ring.Signaled != 0, q.attr.Timeout < unaskedTimeout, s.sinceAck > unaskedMost,
		s.sentAt == 0 || q.eng.now.Sub(s.sentAt) > busyTime, s.snd.Before(s.max), 2*q.win.inFlight >= q.win.size:
		return true
	}
	return q.attr.FlowControl != 0 && s.credit.limited && ib.PSN(s.credit.lsn).Diff(ib.PSN(r.ssn&ib.PSNMask)) < unaskedMost
}

// holdACK makes the responder acknowledge what it has received after heldTime, unless it does so before.
func (q *QP) holdACK() {
	if s := q.resp; !s.ack && !q.holding() {
		s.heldUntil = q.eng.now.Add(heldTime)
		q.eng.held.push(q)
		q.eng.bell.Ring()
	}
}

// holding reports whether q holds an ACK.
func (q *QP) holding() bool { return q.in(heldKind) }

// told records that everything received is acknowledged.
func (q *QP) told() {
	q.resp.ack = false
	q.eng.trail.covered(q)
	if q.holding() {
		q.eng.held.remove(q)
	}
}

// sendHeld schedules the held ACKs that are due at now. All are held for the same time, so the list is in the order of
// their ends.
func (e *Engine) sendHeld(now clock.Time) {
	for q := e.held.head; q != nil && q.resp.heldUntil <= now; q = e.held.head {
		e.held.remove(q)
		q.resp.ack = true
		q.activate()
	}
}

// sendHeldACKs emits the held ACKs of a priority before its MADs: one of these may end the connection at the peer, which would then
// flush messages that have arrived.
func (e *Engine) sendHeldACKs(priority uint8, out []frame.Out) (n int) {
	for q, next := e.held.head, (*QP)(nil); q != nil && n < len(out); q = next {
		if next = q.placeOf(heldKind).next; q.priority != priority {
			continue
		}
		e.held.remove(q)
		if q.resp.ack = true; q.resp.pending > 0 || q.state < command.RTR || q.state > command.SQD {
			q.activate()
			continue
		}
		n += e.noteSent(q, out[n:], q.acknowledge(out[n:]))
	}
	return n
}

// lastACK is the ACK of a queue pair that has left the states in which it sends.
type lastACK struct {
	route *frame.Route
	head  [ib.BTHLen + ib.AETHLen]byte
}

// leaveACK hands the ACK that q holds to the engine, because q is about to end: to the requester the messages have
// arrived, and it must not see them fail.
func (q *QP) leaveACK() {
	if !q.holding() && q.eng.trail.q != q || q.resp.nak || q.state < command.RTR || q.state > command.SQD {
		return
	}
	var o frame.Out
	psn, msn := q.acknowledged()
	q.sendACK(&o, psn, q.creditSyndrome(), msn)
	q.told()
	if q.eng.packets != nil {
		q.noteOut(&o, q.position())
	}
	l := lastACK{route: q.route}
	copy(l.head[:], o.Head[frame.HeadRoom:o.HeadEnd])
	q.eng.last = append(q.eng.last, l)
	q.eng.bell.Ring()
	q.eng.counters.ACKsSent++
}

// sendLastACKs emits the ACKs of a priority of queue pairs that have ended.
func (e *Engine) sendLastACKs(priority uint8, out []frame.Out) (n int) {
	kept := e.last[:0]
	for i := range e.last {
		l := &e.last[i]
		if l.route.Priority != priority || n == len(out) {
			kept = append(kept, *l)
			continue
		}
		o := &out[n]
		o.Reset(l.route)
		o.HeadEnd = frame.HeadRoom + uint16(copy(o.Head[frame.HeadRoom:], l.head[:]))
		n++
	}
	clear(e.last[len(kept):])
	e.last = kept
	return n
}

// Parting returns the priorities, as Pending does, at which Transmit has ACKs of queue pairs that have ended. Their
// routes must last until then.
func (e *Engine) Parting() (priorities uint8) {
	for i := range e.last {
		priorities |= 1 << e.last[i].route.Priority
	}
	return priorities
}

// Owes reports whether an ACK or a NAK of a queue pair that has ended has not left yet. Whoever tells its peer of the end by
// another way than Transmit has to let it go first: a peer that learns of the end before would flush a request that was
// carried out, or that has an error of its own.
func (e *Engine) Owes() bool {
	if len(e.last) > 0 {
		return true
	}
	if e.failed == 0 {
		return false
	}
	for i := range e.active.lists {
		for q := e.active.lists[i].head; q != nil; q = q.placeOf(activeKind).next {
			if q.resp.nak && q.state == command.Err {
				return true
			}
		}
	}
	return false
}

package transport

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/internal/ring"
)

// outbox is what a requester has handed over on the local path.
type outbox struct {
	oldest *request // the first that is not answered
	count  int32    // how many are not
	epoch  uint32   // changes with each refusal
}

// join puts q on the local path. Nothing in progress is due, so none of it belongs to the peer; and what q still held
// back for the wire has no meaning there.
func (q *QP) join() {
	q.stopAwaitingCredit()
	q.dropAllEarly()
	q.told()
	if q.waiting() {
		q.win.waiting.remove(q)
	}
	q.turnOver()
	q.req.outbox, q.resp.inbox = outbox{}, inbox{}
	q.resp.dry = false // announced otherwise
	q.carry(path.ByLoop)
	q.resume()
}

// leave returns q to the wire. What was handed over and not finished starts over there, and gets no answer if the peer
// has ended.
func (q *QP) leave() {
	q.takeBack(q.req.outbox.oldest)
	q.req.outbox, q.resp.inbox = outbox{}, inbox{}
	q.req.credit.granted = false // nothing was granted meanwhile
	q.carry(path.ByPackets)
	q.activate()
}

// carry makes c the carrier of q's messages. q has its turns elsewhere from now on.
func (q *QP) carry(c path.Carrier) {
	turn := q.active() || q.in(localListKind)
	q.dropTurns()
	if q.carrier = c; turn {
		q.activate()
	}
}

// dropTurns takes q's turns away.
func (q *QP) dropTurns() {
	if q.active() {
		q.eng.active.remove(q)
	}
	if q.in(localListKind) {
		q.eng.locals.remove(q)
	}
	if q.in(rawKind) {
		q.eng.raw.remove(q)
	}
}

// takeBack makes q send everything from r on again: the peer has not begun it.
func (q *QP) takeBack(r *request) {
	if r == nil {
		return
	}
	s := q.req
	s.cur, s.idx = r, 0
	s.snd, s.max = s.una, s.una
	for ; r != nil; r = r.next {
		if r.begun && r.kind != kindLocal {
			r.begun = false
			if r.answered() {
				s.reads--
			}
		}
	}
	s.outbox.oldest, s.outbox.count = nil, 0
}

// handOver gives the peer the next messages. more means that only the turn has ended.
func (q *QP) handOver() (run Local, more bool) {
	s := q.req
	o := &s.outbox
	if q.state != command.RTS && q.state != command.SQD || s.rnrWait || q.pair.Carrier() != path.ByLoop || q.Parting() {
		return run, false
	}
	for run.count < localMessages && o.count < localUnanswered {
		r := q.current()
		switch {
		case r == nil, !r.begun && !q.mayBegin(r):
			return run, false
		case r.kind == kindLocal:
			if !r.begun {
				q.runLocal(r)
			}
			if q.pass(r); !q.retired() {
				return run, false
			}
			continue
		}
		q.begin(r)
		if o.count++; o.count == 1 {
			o.oldest = r
		}
		if run.count++; run.count == 1 {
			run = Local{pair: q.pair, first: r, epoch: o.epoch, count: 1, to: q.other(), kind: localRun}
		}
		s.cur, s.idx = r.next, 0
		s.snd, s.max = r.end(), r.end()
	}
	return run, o.count < localUnanswered
}

// retired completes what is done, and reports whether q may go on.
func (q *QP) retired() bool {
	q.retire()
	return !q.req.stopped && q.carrier == path.ByLoop
}

// begin marks r as begun.
func (q *QP) begin(r *request) {
	if !r.begun {
		r.begun = true
		if r.answered() {
			q.req.reads++
		}
	}
}

// localAnswer handles what the responder says about the messages that q handed over.
func (q *QP) localAnswer(now clock.Time, l *Local) {
	o := &q.req.outbox
	for range l.count {
		q.countLocal(o.oldest)
		q.past()
	}
	switch l.kind {
	case localAtomic:
		q.answeredAtomic(l.value)
	case localDropped:
		q.past()
	case localRefused, localFault:
		q.retire()
		q.undone(now, l)
		return
	}
	if q.retired() && (q.req.cur != nil || q.posted()) {
		q.activate()
	}
}

// posted reports whether requests wait to be taken.
func (q *QP) posted() bool {
	n, err := q.sq.Pending()
	return n > 0 || err != nil
}

// past goes past the oldest message handed over, which has come to its end.
func (q *QP) past() {
	s := q.req
	o := &s.outbox
	r := o.oldest
	s.una = r.end()
	s.retries, s.rnrRetries, s.timeouts = q.attr.Retry, q.attr.RNRRetry, 0
	s.nakSeen = false
	if q.reliable() {
		q.acknowledgedSome()
	}
	if o.count--; o.count == 0 {
		o.oldest = nil
		return
	}
	for r = r.next; r.kind == kindLocal; {
		r = r.next
	}
	o.oldest = r
}

// answeredAtomic takes the result of an atomic. The atomic is done and must not be repeated, so its result is placed here
// even if that ends later.
func (q *QP) answeredAtomic(original uint64) {
	r := q.req.outbox.oldest
	binary.NativeEndian.PutUint64(q.eng.word[:], original)
	if err := q.place(&r.wr.mem, 0, q.eng.word[:], true, r); err != nil {
		q.eng.counters.RequesterProtectionErrors++
		q.takeBack(r.next)
		q.failLater(r, ring.LocalProtection)
		return
	}
	q.countLocal(r)
	q.past()
}

// undone handles the refusal of the oldest message handed over, as if it had come over the wire, or a fault of its memory
// here. The peer has forgotten those behind it.
func (q *QP) undone(now clock.Time, l *Local) {
	s := q.req
	r := s.outbox.oldest
	s.outbox.epoch = l.epoch
	q.takeBack(r)
	q.begin(r)
	if l.kind == localFault {
		q.eng.counters.RequesterProtectionErrors++
		q.failLater(r, ring.LocalProtection)
		return
	}
	s.snd = r.first.Next()
	s.max = s.snd
	q.negative(now, r.first, l.syndrome)
}

// receiveAvailable ends the wait for a receive: the RNR timer only matters on the wire, where nothing else tells the
// requester.
func (q *QP) receiveAvailable() {
	if s := q.req; s.rnrWait {
		s.rnrWait = false
		q.eng.timers.arm(q, clock.Never)
		q.activate()
	}
}

// countLocal counts a message of q that its peer has finished.
func (q *QP) countLocal(r *request) {
	c := &q.eng.counters
	c.LocalMessages++
	c.LocalBytes += r.length
	c.countMoved(r, !r.fetches())
}

// countMoved counts the packets and bytes of r, which went out or came in.
func (c *Counters) countMoved(r *request, out bool) {
	packets, bytes := &c.LocalInboundPackets, &c.LocalInboundBytes
	if out {
		packets, bytes = &c.LocalOutboundPackets, &c.LocalOutboundBytes
	}
	*packets += uint64(r.packets)
	*bytes += r.length
}

// postedLocal handles a doorbell on the local path. It reports whether there is something to do.
func (q *QP) postedLocal() bool {
	work := false
	if in := &q.resp.inbox; in.refused { // the peer waits for a receive
		if n, err := q.rq.Pending(); n > 0 && err == nil {
			in.refused, in.available, work = false, true, true
		}
	}
	if work = work || q.state == command.RTS && q.posted(); work {
		q.activate()
	}
	return work
}

// leavePeer returns q to the wire at once, and its peer when that learns of it; or both as soon as their programs have
// left them.
func (q *QP) leavePeer() { q.stepAlone(path.Break) }

// blocked returns q to the wire, which can wait for memory that cannot be accessed within a call.
func (q *QP) blocked() {
	q.leavePeer()
	q.checkDrained()
}

// settle returns a pair that leaves the local path to the wire if neither end is within a message; q is the end that has
// finished one.
func (q *QP) settle() {
	if q.pair.unopened() {
		q.stepAlone(path.Quiet)
		q.checkDrained()
	}
}

// stepAlone makes a transition in a turn of q's engine. The peer's engine learns of it by the loop.
func (q *QP) stepAlone(e path.Event) {
	p := q.pair
	if p == nil {
		return
	}
	do, ok := p.Step(e)
	if p.due |= do & drivers; !ok || do&(path.Leave|path.Release) == 0 {
		return
	}
	q.eng.bell.Ring()
	*q.eng.left.push() = Local{pair: p, to: q.other(), kind: localLeft}
	if do&path.Leave != 0 {
		q.leave()
	} else {
		q.activate()
	}
}

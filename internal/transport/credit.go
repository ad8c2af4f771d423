package transport

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// creditWait is how long a requester without credits waits to be told of new ones
// before it probes. A probe that comes too early costs the responder's RNR timer,
// which is commonly longer, and must be waited out.
const creditWait = 10 * time.Millisecond

// credit is what a requester knows of the responder's receives (IBA 9.7.7.2).
type credit struct {
	limited bool   // the responder counts credits
	lsn     uint32 // limit sequence number: the last message that may be sent
	granted bool   // lsn was granted once
	patient bool   // a probe was refused: better wait to be told of new receives
	waiting bool   // for the responder to say so
	asks    bool   // waited in vain: the probe may go
}

// countsCredits says whether the responder tells how many receives are posted.
func (q *QP) countsCredits() bool { return q.attr.FlowControl != 0 && !q.srq }

// creditSyndrome is an ACK with the receives that are posted, counting the one
// that a message in progress uses; it is not in the MSN yet (IBA 9.7.7.2.2).
func (q *QP) creditSyndrome() ib.Syndrome {
	if !q.countsCredits() {
		return ib.ACK(ib.CreditInvalid)
	}
	n, err := q.rq.Pending()
	if err != nil {
		return ib.ACK(0)
	}
	if q.resp.recv != nil {
		n++
	}
	q.resp.dry = n == 0
	return ib.ACK(ib.CreditCode(uint32(n)))
}

// announceReceives owes an unsolicited ACK where receives were posted and the
// requester knows of none (IBA 9.7.7.2).
func (q *QP) announceReceives() {
	s := &q.resp
	if !s.dry || q.peer != nil {
		return
	}
	if n, err := q.rq.Pending(); n > 0 && err == nil {
		s.ack = true
		q.activate()
	}
}

// unsolicited takes an ACK that repeats the last one and may bring new credits.
// It reports whether it did.
func (q *QP) unsolicited(syndrome ib.Syndrome, msn uint32) bool {
	c := &q.req.credit
	before := *c
	q.grant(syndrome, msn)
	if c.lsn == before.lsn && c.limited == before.limited {
		return false
	}
	c.asks = false
	q.stopAwaitingCredit()
	q.endRNRWait()
	if q.wantsTurn() {
		q.activate()
	}
	return true
}

// endRNRWait sends again what found no receive, once the responder has told of one for it. IBA 9.7.5.2.8 has a requester wait
// for the timer that came with the refusal; who has sent it says here that there is no need.
func (q *QP) endRNRWait() {
	if !q.req.rnrWait {
		return
	}
	if r := q.find(q.req.una); r != nil && !q.mustProbe(r) {
		q.eng.timers.arm(q, q.eng.now)
	}
}

// grant takes the credit count of an ACK: the responder will take messages up
// to MSN plus credits (IBA 9.7.7.2.2). Receives that were posted stay so, and an
// ACK that says less is a late one.
func (q *QP) grant(syndrome ib.Syndrome, msn uint32) {
	if q.attr.FlowControl == 0 {
		return
	}
	c := &q.req.credit
	n, limited := ib.Credits(syndrome.Value())
	c.limited = limited
	if lsn := (msn + n) & ib.PSNMask; !c.granted || ib.PSN(lsn).After(ib.PSN(c.lsn)) {
		c.lsn, c.granted = lsn, limited
	}
}

// mustProbe says that the responder has not granted a receive for r. With
// nothing outstanding one packet may still go and ask (IBA 9.7.7.2.5); once it
// is acknowledged the message has its receive.
func (q *QP) mustProbe(r *request) bool {
	c := &q.req.credit
	return c.limited && takesReceive(r.wr.Op) && ib.PSN(r.ssn&ib.PSNMask).After(ib.PSN(c.lsn))
}

func takesReceive(op ring.WROp) bool { return op <= ring.OpSendInv || op == ring.OpWriteImm }

// awaitCredit says that a probe is to wait, because the responder will tell when
// it has a receive. Most responders have one by the time that a probe comes, so probes
// go at once until one is refused: from then on each waits for the news, unless the
// responder turns out to send none.
func (q *QP) awaitCredit() bool {
	c := &q.req.credit
	if !c.granted || !c.patient || c.asks {
		return false
	}
	if !c.waiting {
		c.waiting = true
		q.eng.timers.arm(q, q.eng.now.Add(creditWait))
	}
	return true
}

func (q *QP) stopAwaitingCredit() {
	if c := &q.req.credit; c.waiting {
		c.waiting = false
		q.eng.timers.arm(q, clock.Never)
	}
}

// probeTaken notes that there was progress. A probe that found a receive after a
// whole wait for news of it shows that the responder sends none.
func (q *QP) probeTaken() {
	if c := &q.req.credit; c.asks {
		c.asks, c.patient = false, false
	}
}

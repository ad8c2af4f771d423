package transport

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// creditWait is how long a requester without credits waits for new ones before it probes. A premature
// probe incurs the responder's RNR timer, which is commonly longer and must be waited out.
const creditWait = 10 * time.Millisecond

// credit is what a requester knows about the responder's receives (IBA 9.7.7.2).
type credit struct {
	limited bool   // the responder counts credits
	lsn     uint32 // limit sequence number: the last message that may be sent
	granted bool   // lsn has been granted at least once
	patient bool   // a probe was refused: better wait for new receives to be announced
	waiting bool   // waiting for such an announcement
	asks    bool   // waited in vain: the probe may be sent
}

// countsCredits reports whether the responder announces how many receives are posted.
func (q *QP) countsCredits() bool { return q.attr.FlowControl != 0 && !q.srq }

// creditSyndrome returns an ACK with the number of posted receives, including the one used by a message in
// progress, which the MSN does not count yet (IBA 9.7.7.2.2).
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

// announceReceives schedules an unsolicited ACK if receives were posted and the requester knows of none
// (IBA 9.7.7.2).
func (q *QP) announceReceives() {
	s := q.resp
	if !s.dry {
		return
	}
	if n, err := q.rq.Pending(); n > 0 && err == nil {
		s.ack = true
		q.activate()
	}
}

// unsolicited handles an ACK that repeats the last one and may bring new credits. It reports whether it
// did.
func (q *QP) unsolicited(syndrome ib.Syndrome, msn uint32) bool {
	c := &q.req.credit
	before := *c
	q.grant(syndrome, msn)
	if c.lsn == before.lsn && c.limited == before.limited {
		return false
	}
	c.asks = false
	q.stopAwaitingCredit()
	q.endRNRWait(&before)
	if q.wantsTurn() {
		q.activate()
	}
	return true
}

// endRNRWait retransmits what found no receive as soon as the responder announces one. IBA 9.7.5.2.8 has a
// requester wait for the timer that came with the RNR NAK, but here its sender itself says that there is no
// need to. That holds for a message that takes a receive and had none granted before: other refusals have
// other causes, as pages of memory that are still being fetched. So a message goes on early once at most,
// and the refusal costs no retry then.
func (q *QP) endRNRWait(before *credit) {
	s := q.req
	if !s.rnrWait {
		return
	}
	if r := q.find(s.una); r != nil && takesReceive(r.wr.Op) && !before.grants(r) && s.credit.grants(r) {
		s.rnrRetries = min(s.rnrRetries+1, q.attr.RNRRetry)
		q.eng.timers.arm(q, q.eng.now)
	}
}

// grant applies the credit count of an ACK: the responder will accept messages up to MSN plus credits (IBA
// 9.7.7.2.2). Posted receives are not withdrawn, so an ACK that grants less is a late one.
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

// mustProbe reports that the responder has not granted a receive for r. If nothing is outstanding, one
// packet may still be sent as a probe (IBA 9.7.7.2.5); once it is acknowledged the message has its
// receive.
func (q *QP) mustProbe(r *request) bool {
	c := &q.req.credit
	return c.limited && takesReceive(r.wr.Op) && !c.reaches(r)
}

// reaches says that the limit of the responder lets r go.
func (c *credit) reaches(r *request) bool { return !ib.PSN(r.ssn & ib.PSNMask).After(ib.PSN(c.lsn)) }

// grants says that the responder has announced a receive for r.
func (c *credit) grants(r *request) bool { return c.limited && c.granted && c.reaches(r) }

func takesReceive(op ring.WROp) bool { return op <= ring.OpSendInv || op == ring.OpWriteImm }

// awaitCredit reports that a probe should wait because the responder will announce new receives. Most
// responders have one by the time a probe arrives, so probes are sent at once until one is refused; from
// then on each waits for an announcement, unless it turns out that the responder makes none.
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

// probeTaken records that there was progress. If a probe found a receive after waiting in vain for an
// announcement, the responder makes none.
func (q *QP) probeTaken() {
	if c := &q.req.credit; c.asks {
		c.asks, c.patient = false, false
	}
}

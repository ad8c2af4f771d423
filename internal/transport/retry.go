package transport

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/trace"
	"github.com/softvpi/softvpi/wire/ib"
)

// timeout handles the expiry of q's timer: the end of an RNR wait, or no acknowledgement in time (IBA
// 9.7.6.1.3).
func (q *QP) timeout(now clock.Time) {
	s := q.req
	if s.rnrWait || s.credit.waiting {
		s.credit.asks = s.credit.waiting
		s.rnrWait, s.credit.waiting = false, false
		q.activate()
		return
	}
	if s.expires > now {
		q.overdue(now)
		return
	}
	if q.flight() == 0 || (q.state != command.RTS && q.state != command.SQD) {
		return
	}
	q.eng.counters.RequesterTimeouts++
	s.timeouts++
	q.eng.trace.Note(trace.AckTimeout, q.num, uint32(s.una), uint32(s.timeouts), uint32(s.retries))
	q.retry(now)
}

const (
	checkFloor = 250 * time.Microsecond
	// gapFloor is checkFloor for when the responder reported a gap: it is responsive then, and only one
	// packet is retransmitted too early.
	gapFloor   = 50 * time.Microsecond
	probeFloor = 2 * time.Millisecond
	maxProbes  = 6

	// longestPause is how long a peer may be silent because it shares its processor.
	longestPause = 250 * time.Millisecond
)

// overdue handles late acknowledgements. If packets that other QPs sent to the same destination a round
// trip later have been acknowledged, these are lost, if they requested an acknowledgement; otherwise it sends a probe
// and waits longer.
func (q *QP) overdue(now clock.Time) {
	s := q.req
	repairs := q.win.keeping.shown && q.repairs()
	gap := repairs && s.nakSeen && s.probes < selectiveChecks
	switch {
	case !gap && q.patient():
		q.eng.timers.arm(q, s.expires)
	case !gap && (s.checked || s.asked.After(s.una) && q.win.passed > s.sentAt.Add(q.win.rtt)):
		q.probe()
	case repairs:
		q.eng.counters.Probes++
		s.probes++
		q.sendAgain(q.nextRun())
	default:
		s.checked = true
		q.eng.timers.arm(q, clock.Min(s.expires, now.Add(q.probeAfter())))
	}
}

// probeAfter returns how long after the last sign of life a probe is sent. It is long compared to a round
// trip and to the pauses of a peer that shares its processor.
func (q *QP) probeAfter() time.Duration {
	return (probeFloor + 4*q.win.rtt) << min(q.req.probes, maxProbes)
}

// probe retransmits the oldest packet, and only that one, long before the ACK timer ends. A full receive
// buffer drops the end of a burst, and nothing follows that would reveal the gap, while ACK timers are
// commonly set to many round trips. To the responder the probe is a duplicate or the packet that it
// misses; the retry counter belongs to the ACK timer, which keeps running. Until there is an answer the
// packets behind it count as in flight: if the receiver is just slow, others in their place would make it
// drop some.
func (q *QP) probe() {
	s := q.req
	if q.flight() == 0 || (q.state != command.RTS && q.state != command.SQD) {
		return
	}
	q.eng.counters.Probes++
	s.probes++
	q.eng.trace.Note(trace.Probe, q.num, uint32(s.una), uint32(s.probes))
	s.unasked = !s.asked.After(s.una)
	s.probing, s.nakSeen, s.selective = true, false, selective{known: s.selective.known, seen: s.una}
	q.seek(s.una)
	q.activate()
}

// probed continues after an acknowledgement while a probe was out: the packet first, which was the oldest
// unacknowledged one, was sent again. The packets that are still unacknowledged are taken for lost and sent
// again, unless no round trip has been measured yet and packets behind first have arrived too: then nothing
// counts as lost: the peer only took longer to begin than a probe waits.
func (q *QP) probed(now clock.Time, first ib.PSN) {
	s := q.req
	if s.probing = false; s.unasked && s.una == s.max {
		s.askMore = askAgain
	}
	switch {
	case q.win.rtt == 0 && s.una.After(first.Next()):
		q.seek(s.max)
	case s.una.Before(s.max):
		q.win.lost(now, int(s.max.Diff(s.una)))
	}
}

// impliedNAK goes back for a lost response, at most once until there is progress.
func (q *QP) impliedNAK(now clock.Time) {
	if q.req.nakSeen || q.state == command.Err {
		return
	}
	q.eng.counters.ImpliedNAKs++
	q.eng.trace.Note(trace.ImpliedNAK, q.num, uint32(q.req.una))
	q.retry(now)
}

// retry goes back to the oldest unacknowledged packet, or gives up after too many attempts. While the RNR
// timer runs it has already gone back, and whatever asks for it is late.
func (q *QP) retry(now clock.Time) {
	s := q.req
	if s.rnrWait || !q.mayRetry(now) {
		return
	}
	q.eng.trace.Note(trace.Retry, q.num, uint32(s.una), uint32(q.flight()), uint32(s.retries))
	q.win.lost(now, q.flight())
	q.goBack()
}

// mayRetry counts an attempt, or gives up after too many.
func (q *QP) mayRetry(now clock.Time) bool {
	s := q.req
	if s.retries == 0 {
		q.eng.counters.RequesterRetriesExceeded++
		q.giveUp(now, ring.RetryExceeded)
		return false
	}
	s.retries--
	s.nakSeen, s.probing, s.expires = true, false, 0
	return true
}

// receiverNotReady waits as long as the responder demands (IBA 9.7.5.2.8) and then retransmits from una.
// Seven retries mean no limit.
func (q *QP) receiverNotReady(now clock.Time, timer uint8) {
	s := q.req
	if s.rnrWait {
		return
	}
	if s.rnrRetries == 0 {
		q.eng.counters.RequesterRNRRetriesExceeded++
		q.giveUp(now, ring.RNRRetryExceeded)
		return
	}
	if s.rnrRetries < 7 {
		s.rnrRetries--
	}
	q.goBack()
	s.credit.asks, s.credit.patient = false, true
	s.rnrWait, s.probing, s.expires = true, false, 0
	q.eng.timers.arm(q, now.Add(ib.RNRTimer(timer)))
}

// giveUp fails the oldest request.
func (q *QP) giveUp(now clock.Time, status ring.Status) {
	if r := q.find(q.req.una); r != nil {
		q.failNow(now, r, status)
	}
}

// goBack makes una the next packet to send.
func (q *QP) goBack() {
	q.eng.counters.RequesterResync++
	q.req.probing, q.req.selective = false, selective{known: q.req.max, seen: q.req.una}
	q.seek(q.req.una)
	q.recount(false)
	q.eng.timers.arm(q, clock.Never)
	q.activate()
}

// seek makes psn the next packet to send. It may lie behind snd, or ahead up to max: the reads and atomics before it that
// have no response yet stay outstanding.
func (q *QP) seek(psn ib.PSN) {
	s := q.req
	s.snd, s.sinceAck, s.timing = psn, 0, false
	s.slotCount = 0
	s.cur, s.idx = nil, 0
	for r := s.head; r != nil; r = r.next {
		if r.begun && r.answered() && psn.After(s.una) && psn.After(r.first) && r.end().After(s.una) {
			end := r.end()
			if psn.Before(end) {
				end = psn
			}
			s.occupy(end)
		}
		if !r.begun || r.packets > 0 && psn.Before(r.end()) {
			s.cur = r
			if psn.After(r.first) {
				s.idx = uint32(psn.Diff(r.first))
			}
			return
		}
	}
}

package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// selectiveGrowth is the factor by which more packets are retransmitted if those behind the retransmitted
	// ones are missing too; selectiveMost is their maximum number before the requester goes back to the gap.
	selectiveGrowth, selectiveMost = 8, 64
	// selectiveGaps is how many gaps in what was in flight are closed one by one, each of which takes a round
	// trip, before the requester goes back.
	selectiveGaps = 10
	// selectiveChecks is how often packets are retransmitted because nothing was heard for some round trips,
	// before the requester waits longer.
	selectiveChecks = 2
	// maxEchoes is how often a repeated ACK has a packet retransmitted until there is progress or a timer expires.
	maxEchoes = 8
	// firstDoubts is for how many gaps a requester goes back before it tests again whether the responder
	// keeps packets that arrive ahead of a missing one; each failed test doubles it, up to mostDoubts.
	firstDoubts, mostDoubts = 16, 1024
)

// keeping is what is known about whether a responder keeps packets that arrive ahead of a missing one. At
// first it is assumed to.
type keeping struct {
	shown  bool // it has been seen to
	doubts int  // remaining gaps to go back for because it did not
	next   int  // doubts after the next failed test
}

func (k *keeping) doubted() {
	k.next = min(max(2*k.next, firstDoubts), mostDoubts)
	k.doubts, k.shown = k.next, false
}

// wentBack records that a requester goes back for a gap.
func (k *keeping) wentBack() { k.doubts = max(k.doubts-1, 0) }

// kept records that the responder had kept what followed a gap.
func (k *keeping) kept() { *k = keeping{shown: true} }

// selective is the selective retransmission of packets missing amid those in flight. A responder that keeps
// what arrives ahead of a missing packet (reorder) needs no more than those. One that does not next asks
// for the packets behind them: then more of them are retransmitted, and soon all.
//
// The last packet in flight follows directly behind the retransmitted ones. To a responder that keeps
// packets it shows that those were sent; one that does not keep any replies with a NAK.
type selective struct {
	on     bool       // packets up to until are to be retransmitted
	back   bool       // the requester went back and is retransmitting everything before known
	echoes uint8      // how often a repeated ACK had something retransmitted since una moved
	until  ib.PSN     // after the last packet retransmitted because it is missing
	end    ib.PSN     // where the retransmission pauses: at until, or at resume behind the last packet
	resume ib.PSN     // where sending then continues
	seen   ib.PSN     // after packets that reached the responder ahead of a missing one; at least una
	known  ib.PSN     // gaps before it already existed when the first of them was found
	run    int32      // packets retransmitted for this gap; 0: there is none
	gaps   int32      // number of those, found one after the other
	at     clock.Time // when they were retransmitted
	points ackPoints
}

// missing handles a gap at una that the responder reported.
func (q *QP) missing(now clock.Time) {
	s := q.req
	m := &s.selective
	if m.back && s.una.Before(m.known) && q.repairs() {
		s.nakSeen = true // it is being retransmitted with all the rest
		return
	}
	if s.rnrWait || !q.mayRetry(now) {
		return
	}
	run := q.nextRun()
	if run > selectiveMost || run > 1 && !q.win.keeping.shown {
		q.win.keeping.doubted()
		run = 0
	}
	if !s.una.Before(m.known) {
		m.known, m.gaps = s.max, 0
	}
	if m.gaps++; m.gaps > selectiveGaps {
		run = 0
	}
	if run == 0 || !q.repairs() {
		q.win.keeping.wentBack()
		q.win.lost(now, q.flight())
		q.goBack()
		m.back = true
		return
	}
	q.win.lost(now, run)
	if m.gaps > 1 {
		q.win.crowded()
	}
	q.sendAgain(run)
}

// repairs reports whether packets may be retransmitted selectively: nothing indicates that the responder
// does not keep packets, and no responses with data are awaited, which must arrive in order.
func (q *QP) repairs() bool {
	return q.win.keeping.doubts == 0 && q.req.reads == 0 && q.attr.Timeout != 0
}

// nextRun returns how many packets to retransmit for a gap at una.
func (q *QP) nextRun() int {
	if m := &q.req.selective; m.run > 0 && m.until == q.req.una {
		return int(m.run) * selectiveGrowth
	}
	return 1
}

// repeated handles a repetition of the last ACK: packets behind a gap have reached a responder that keeps
// them. It reports whether it could use that information. Those packets are no longer in flight, and the
// NAK or the retransmission may have been lost. What a repetition has retransmitted may make the responder repeat the ACK
// again, without end if it is not the network that holds up the acknowledgement: each waits longer, and the rest is left
// to the timers.
func (q *QP) repeated(now clock.Time) bool {
	s := q.req
	m := &s.selective
	if q.flight() == 0 || s.rnrWait || s.probing || !q.repairs() || q.patient() {
		return false
	}
	if mark, ok := m.points.take(); ok {
		m.seen = mark.Next()
		q.recount(true)
	}
	if !m.on && m.echoes < maxEchoes && (m.run == 0 || now.Sub(m.at) > q.win.rtt<<(m.echoes/2)) {
		q.win.lost(now, 1)
		s.nakSeen = true
		m.echoes++
		q.sendAgain(1)
	}
	if q.wantsTurn() {
		q.activate()
	}
	return true
}

// ackPoints are the PSNs of packets in flight that request an acknowledgement, the oldest first, as far as
// there is room.
type ackPoints struct {
	psns  [16]ib.PSN
	count uint8
}

func (m *ackPoints) add(psn ib.PSN) {
	if int(m.count) < len(m.psns) {
		m.psns[m.count] = psn
		m.count++
	}
}

func (m *ackPoints) take() (psn ib.PSN, ok bool) {
	if m.count == 0 {
		return 0, false
	}
	psn = m.psns[0]
	m.count--
	copy(m.psns[:m.count], m.psns[1:])
	return psn, true
}

// drop removes those before psn.
func (m *ackPoints) drop(psn ib.PSN) {
	n := uint8(0)
	for n < m.count && m.psns[n].Before(psn) {
		n++
	}
	if n > 0 {
		copy(m.psns[:], m.psns[n:m.count])
		m.count -= n
	}
}

// sendAgain retransmits the first n packets in flight, and the last one, and then continues where it was.
func (q *QP) sendAgain(n int) {
	s := q.req
	m := &s.selective
	m.on, m.back, m.run, m.resume = true, false, int32(min(n, reorderSpan)), s.max
	if m.until = s.una.Add(uint32(n)); m.until.After(s.max) {
		m.until = s.max
	}
	m.end = m.until
	q.eng.counters.RequesterResync++
	q.seek(s.una)
	q.eng.timers.arm(q, clock.Never)
	q.activate()
}

// goesOn reports whether more is to be retransmitted directly behind the missing packets.
func (m *selective) goesOn() bool { return m.on && m.end.Before(m.resume) }

// sentAgain retransmits the last packet in flight once the missing ones have been, and resumes sending
// where it was after that.
func (q *QP) sentAgain(now clock.Time) {
	m := &q.req.selective
	if !m.on || q.req.snd.Before(m.end) {
		return
	}
	m.at = now
	if m.goesOn() {
		q.sendLast()
		return
	}
	m.on = false
	q.seek(m.resume)
}

// sendLast continues a retransmission with the last packet in flight.
func (q *QP) sendLast() {
	m := &q.req.selective
	m.end = m.resume
	q.seek(m.resume.Prev())
}

// acknowledgedSome records that una has moved.
func (q *QP) acknowledgedSome() {
	s := q.req
	m := &s.selective
	m.echoes = 0
	m.points.drop(s.una)
	if m.seen.Before(s.una) {
		m.seen = s.una
	}
	if m.run == 0 {
		return
	}
	if s.una.After(m.until) {
		m.run = 0
		q.win.keeping.kept()
	}
	switch {
	case !m.on || s.una.Before(m.until):
	case s.una == m.until && m.goesOn():
		q.sendLast()
	case s.una.After(m.until) || m.end == m.until:
		m.on = false
		if q.seek(m.resume); s.snd.Before(s.una) {
			q.seek(s.una)
		}
	}
}

// flight returns how many packets were sent but not acknowledged.
func (q *QP) flight() int { return int(q.sentTo().Diff(q.req.una)) }

// onTheWay is flight without the packets that the responder keeps.
func (q *QP) onTheWay() int {
	from := q.req.una
	if q.req.selective.seen.After(from) {
		from = q.req.selective.seen
	}
	return max(int(q.sentTo().Diff(from)), 0)
}

// sentTo is the PSN after the last packet in flight.
func (q *QP) sentTo() ib.PSN {
	s := q.req
	if s.selective.on {
		return s.selective.resume
	}
	return s.snd
}

package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// mendGrowth is by how much more packets are sent again where those behind what was
	// sent again are missing too, and mendMost how many at most before the requester
	// goes back to the gap.
	mendGrowth, mendMost = 8, 64
	// mendGaps is how many gaps in what was in flight are mended one by one, each of
	// which takes a round trip, before the requester goes back.
	mendGaps = 10
	// mendChecks is how often packets are sent again because nothing was heard for
	// some round trips, before the requester waits for longer.
	mendChecks = 2
	// firstDoubts is how many gaps a requester goes back to before it tries again
	// whether the responder keeps packets that come ahead of their turn; each time in
	// vain there are twice as many, up to mostDoubts.
	firstDoubts, mostDoubts = 16, 1024
)

// keeper is what is known of a responder that may keep packets that come ahead of
// their turn. At first it is taken for one that does.
type keeper struct {
	shown  bool // it did
	doubts int  // gaps to go back to because it did not
	next   int  // doubts, when it does not again
}

func (k *keeper) doubted() {
	k.next = min(max(2*k.next, firstDoubts), mostDoubts)
	k.doubts, k.shown = k.next, false
}

// mend is the sending again of packets that are missing in the midst of what is in
// flight. A responder that keeps what comes ahead of its turn (reorder) needs no more
// than those. One that does not asks for those behind them next: then more of them are
// sent again, and soon all.
type mend struct {
	on     bool       // packets are to be sent again, up to until
	until  ib.PSN     // behind the last packet that was sent again
	resume ib.PSN     // where sending goes on then
	run    int        // packets sent again for this gap; 0: there is none
	at     clock.Time // when they were sent
	seen   ib.PSN     // behind packets that came to the responder ahead of their turn; from una on
	marks  marks
	known  ib.PSN // gaps before it were there already when the first of them was found
	gaps   int    // of those, found one after the other
	back   bool   // the requester went back, and sends everything before known again
}

// missing deals with a gap at una that the responder told of.
func (q *QP) missing(now clock.Time) {
	s := &q.req
	m := &s.mend
	if m.back && s.una.Before(m.known) && q.mends() {
		s.nakSeen = true // being sent again with all the rest
		return
	}
	if s.rnrWait || !q.mayRetry(now) {
		return
	}
	run := q.nextRun()
	if run > mendMost || run > 1 && !q.win.keeper.shown {
		q.win.keeper.doubted()
		run = 0
	}
	if !s.una.Before(m.known) {
		m.known, m.gaps = s.max, 0
	}
	if m.gaps++; m.gaps > mendGaps {
		run = 0
	}
	if run == 0 || !q.mends() {
		q.win.keeper.doubts = max(q.win.keeper.doubts-1, 0)
		q.win.Lost(now, q.flight())
		q.goBack()
		m.back = true
		return
	}
	q.win.Lost(now, run)
	if m.gaps > 1 {
		q.win.Crowded()
	}
	q.sendAgain(run)
}

// mends reports whether packets may be sent again out of order: nothing tells that the
// responder keeps none, and no answers with data are awaited, which have an order of
// their own.
func (q *QP) mends() bool { return q.win.keeper.doubts == 0 && q.req.reads == 0 && q.attr.Timeout != 0 }

// nextRun is how many packets to send again for a gap at una.
func (q *QP) nextRun() int {
	if m := &q.req.mend; m.run > 0 && m.until == q.req.una {
		return m.run * mendGrowth
	}
	return 1
}

// repeated takes the last ACK once more: packets behind a gap have come to a responder
// that keeps them. It reports whether that is of use. They are not in flight any more,
// and the NAK or what was sent again may have been lost.
func (q *QP) repeated(now clock.Time) bool {
	s := &q.req
	m := &s.mend
	if q.flight() == 0 || s.rnrWait || s.probing || !q.mends() {
		return false
	}
	if mark, ok := m.marks.take(); ok {
		m.seen = mark.Next()
		q.recount(true)
	}
	if !m.on && (m.run == 0 || now.Sub(m.at) > q.win.RTT) {
		q.win.Lost(now, 1)
		s.nakSeen = true
		q.sendAgain(1)
	}
	if q.wantsTurn() {
		q.activate()
	}
	return true
}

// marks is the PSNs of packets in flight that ask for an acknowledgement, the oldest
// first, as far as there is room for them.
type marks struct {
	psns  [16]ib.PSN
	count int
}

func (m *marks) add(psn ib.PSN) {
	if m.count < len(m.psns) {
		m.psns[m.count] = psn
		m.count++
	}
}

func (m *marks) take() (psn ib.PSN, ok bool) {
	if m.count == 0 {
		return 0, false
	}
	psn = m.psns[0]
	m.count--
	copy(m.psns[:m.count], m.psns[1:])
	return psn, true
}

// drop forgets those before psn.
func (m *marks) drop(psn ib.PSN) {
	n := 0
	for n < m.count && m.psns[n].Before(psn) {
		n++
	}
	if n > 0 {
		copy(m.psns[:], m.psns[n:m.count])
		m.count -= n
	}
}

// forgotten goes back where an ACK goes no further than what was sent again: the
// responder has not kept what showed it the gap.
func (q *QP) forgotten() {
	s := &q.req
	m := &s.mend
	if m.run == 0 || m.on || s.una != m.until || q.win.keeper.shown || q.flight() == 0 {
		return
	}
	q.win.keeper.doubted()
	q.goBack()
}

// sendAgain sends the first n packets in flight again and then goes on.
func (q *QP) sendAgain(n int) {
	s := &q.req
	m := &s.mend
	m.on, m.back, m.run, m.resume = true, false, n, s.max
	if m.until = s.una.Add(uint32(n)); m.until.After(s.max) {
		m.until = s.max
	}
	q.eng.counters.RequesterResync++
	q.seek(s.una)
	q.eng.timers.arm(q, clock.Never)
	q.activate()
}

// sentAgain goes on where sending was, once what was to be sent again has been.
func (q *QP) sentAgain(now clock.Time) {
	if m := &q.req.mend; m.on && !q.req.snd.Before(m.until) {
		m.on, m.at = false, now
		q.seek(m.resume)
	}
}

// mended notes that una has moved.
func (q *QP) mended() {
	s := &q.req
	m := &s.mend
	m.marks.drop(s.una)
	if m.seen.Before(s.una) {
		m.seen = s.una
	}
	if m.run == 0 {
		return
	}
	if s.una.After(m.until) {
		m.run, q.win.keeper = 0, keeper{shown: true} // it had what came behind
	}
	if m.on && !s.una.Before(m.until) {
		m.on = false
		if q.seek(m.resume); s.snd.Before(s.una) {
			q.seek(s.una)
		}
	}
}

// flight is how many packets were sent and are not acknowledged.
func (q *QP) flight() int { return int(q.sentTo().Diff(q.req.una)) }

// onTheWay is flight without those that the responder keeps.
func (q *QP) onTheWay() int {
	from := q.req.una
	if q.req.mend.seen.After(from) {
		from = q.req.mend.seen
	}
	return max(int(q.sentTo().Diff(from)), 0)
}

// sentTo is the PSN behind the last packet in flight.
func (q *QP) sentTo() ib.PSN {
	s := &q.req
	if s.mend.on {
		return s.mend.resume
	}
	return s.snd
}

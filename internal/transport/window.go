package transport

import (
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
)

// cutInterval is the time after which a window may be halved again although no
// whole window of packets has been acknowledged since.
const cutInterval = time.Millisecond

const (
	// Losses are counted over as many packets as the window holds, and lossSample at
	// least. Of them spared and one of sparedShare may have to be sent again before that
	// is a sign of congestion: single packets are lost whatever the window is, while a
	// receive buffer that overflows loses many at once.
	lossSample, spared, sparedShare = 256, 8, 32
	// crowdedShare is the part of a window that it shrinks by for a gap that had to wait
	// until another one of its QP was mended.
	crowdedShare = 64
)

// window bounds the packets in flight to one destination address. All QPs to it
// share one, because what overflows is the one receive buffer there.
type window struct {
	dst       netip.Addr
	cfg       *WindowConfig
	most      int // the largest that it grows
	size      int // packets that may be in flight
	threshold int // below it the window grows by a packet per packet acknowledged
	inFlight  int
	grown     int           // acknowledged packets towards the next step of slow growth
	since     int           // acknowledged packets since the last cut
	rtt       time.Duration // smoothed, from a request to its acknowledgement
	passed    clock.Time    // when the youngest request was sent that was timed and acknowledged
	lastCut   clock.Time
	gone      int // packets to be sent again, of those sent since heard was 0
	heard     int // packets acknowledged meanwhile, up to a window of them
	keeper    keeper
	users     int
	waiting   qpList
	reserved  int // packets of room for QPs that were woken and have not had their turn
}

func newWindow(dst netip.Addr, near bool, cfg *WindowConfig) *window {
	most := cfg.Max
	if near {
		most = cfg.Near
	}
	return &window{dst: dst, cfg: cfg, most: most, size: cfg.Start, waiting: qpList{kind: waitingKind}, threshold: most, since: cfg.Start}
}

// acked takes n packets out of flight and grows the window.
func (w *window) acked(n int) {
	used := w.inFlight
	w.inFlight -= n
	w.since += n
	if w.heard += n; w.heard >= max(w.size, lossSample) {
		w.gone, w.heard = 0, 0
	}
	if w.size >= w.most || used < w.size/2 {
		return // at its largest, or not what holds the senders back
	}
	if w.size < w.threshold {
		w.size = min(w.size+n, w.most)
		return
	}
	w.grown += n
	if w.grown >= w.size {
		w.grown = 0
		w.size++
	}
}

// measured takes the times at which a request was sent and acknowledged.
func (w *window) measured(sent, acked clock.Time) {
	w.passed = max(w.passed, sent)
	d := acked.Sub(sent)
	if w.rtt == 0 {
		w.rtt = d
		return
	}
	w.rtt += (d - w.rtt) / 8
}

// lost notes n packets to be sent again. Where they are many it halves the window, at most once for each window of acknowledged packets
// or each cutInterval: one burst of losses is one sign of congestion. It takes two
// losses within a window to go below the size that every window starts with, and
// growth up to there is fast: packets that are lost now and then, of which a smaller
// window loses as many, would otherwise keep it at a few packets.
func (w *window) lost(now clock.Time, n int) {
	if w.gone += n; w.gone <= spared+w.heard/sparedShare {
		return
	}
	w.gone, w.heard = 0, 0
	again, least := w.since < w.size, w.cfg.Min
	if again && now.Sub(w.lastCut) < cutInterval {
		return
	}
	if !again {
		least = min(w.size, w.cfg.Start)
	}
	w.size = max(w.size/2, least)
	w.threshold = max(w.size, w.cfg.Start)
	w.grown, w.since, w.lastCut = 0, 0, now
}

// crowded makes the window a little smaller because a QP found another gap in what it
// had in flight. A responder tells of one gap at a time, and each takes a round trip: a window with several gaps in
// it is too large.
func (w *window) crowded() {
	if w.size > w.cfg.Start {
		w.size -= max(w.size/crowdedShare, 1)
		w.size = max(w.size, w.cfg.Start)
		w.threshold = max(w.size, w.cfg.Start)
	}
}

// wake makes QPs that wait for this window active while there is the room that
// they want: the longest waiting first, and none past it. A burst costs the system
// little more than a packet does, so room is not handed out in crumbs.
func (w *window) wake() {
	for q := w.waiting.head; q != nil; q = w.waiting.head {
		taken := w.inFlight + w.reserved
		if taken > 0 && w.size-taken < q.wants {
			return
		}
		w.waiting.remove(q)
		w.reserved += q.wants
		q.woken = true
		q.activate()
	}
}

// turnOver gives back what q was woken for and did not use.
func (q *QP) turnOver() {
	if q.woken {
		q.woken = false
		q.win.reserved -= q.wants
		q.win.wake()
	}
}

// windowTo returns the window that QPs to the destination of a route share.
func (e *Engine) windowTo(to *frame.Route) *window {
	w := e.windows[to.Dst]
	if w == nil {
		w = newWindow(to.Dst, to.Near, &e.cfg.Window)
		e.windows[to.Dst] = w
	}
	w.users++
	return w
}

func (e *Engine) leaveWindow(q *QP) {
	w := q.win
	if w == nil {
		return
	}
	w.inFlight -= q.counted
	q.counted = 0
	if q.waiting() {
		w.waiting.remove(q)
	}
	if q.woken {
		q.woken = false
		w.reserved -= q.wants
	}
	q.win = nil
	if w.users--; w.users == 0 {
		delete(e.windows, w.dst)
		return
	}
	w.wake()
}

// moveWindow follows a change of the route's destination.
func (q *QP) moveWindow() {
	if q.win.dst == q.route.Dst {
		return
	}
	q.eng.leaveWindow(q)
	q.win = q.eng.windowTo(q.route)
	q.recount(false)
	q.activate()
}

package transport

import (
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/transport/congestion"
)

// fewSenders is how many packets of a window there are at least for each of its senders where these are few.
const fewSenders = 16

// windowKey is whose packets share a window: those to a destination at one priority, because priorities may be held up
// separately.
type windowKey struct {
	dst      netip.Addr
	priority uint8
}

// window is what is in flight to one destination address at one priority, and how much may be. All QPs with these share
// it, because they overflow the same receive buffer.
type window struct {
	control  congestion.Controller
	size     int           // packets that may be in flight, as control says
	most     int           // maximum of size
	inFlight int           // packets sent that have not arrived, as far as is known
	rtt      time.Duration // smoothed, from a request to its acknowledgement
	passed   clock.Time    // when the most recent request that was timed and acknowledged was sent
	key      windowKey
	keeping  keeping
	users    int
	waiting  qpList
	reserved int // packets of room for QPs that were woken but have not had their turn
}

func newWindow(of windowKey, control congestion.Controller) *window {
	w := &window{control: control, key: of, waiting: qpList{kind: waitingKind}}
	w.size, w.most = control.Limit()
	return w
}

// acked takes n packets that have arrived out of flight.
func (w *window) acked(now clock.Time, n int) {
	w.size = w.control.Acked(now, n, w.inFlight)
	w.inFlight -= n
}

// counted counts n more packets in flight, or fewer: those of a QP that goes back or ends.
func (w *window) counted(n int) { w.inFlight += n }

// lost says that n packets are retransmitted because they are taken for lost.
func (w *window) lost(now clock.Time, n int) { w.size = w.control.Lost(now, n) }

// crowded says that a QP found another gap in its packets in flight.
func (w *window) crowded() { w.size = w.control.Crowded() }

// measured records the times at which a request was sent and acknowledged.
func (w *window) measured(sent, acked clock.Time) {
	w.passed = max(w.passed, sent)
	d := acked.Sub(sent)
	if w.rtt == 0 {
		w.rtt = d
		return
	}
	w.rtt += (d - w.rtt) / 8
}

// part returns how many packets one of several senders has at a time: half of a window of maximum size, so
// that two take turns, and a quarter of a smaller one. Few senders have more of that, up to a whole burst,
// if it leaves room for a burst of another: each burst, and the acknowledgement that its sender then needs,
// costs as much as a dozen packets. A sender by itself has nothing else to go on with while it waits.
func (w *window) part(burst int) int {
	if w.size >= w.most {
		return w.size / 2
	}
	part := w.size / 4
	if w.users > 1 && w.users*fewSenders <= w.size {
		part = max(part, min(w.size-burst, burst))
	}
	return part
}

// wake activates QPs that wait for this window as long as there is the room that they want, in order, the
// longest waiting first. A burst costs the system little more than a packet, so room is not handed out in
// crumbs.
func (w *window) wake() {
	for q := w.waiting.head; q != nil; q = w.waiting.head {
		taken := w.inFlight + w.reserved
		if taken > 0 && w.size-taken < int(q.req.wants) {
			return
		}
		w.waiting.remove(q)
		w.reserved += int(q.req.wants)
		q.woken = true
		q.activate()
	}
}

// turnOver returns the room for which q was woken and that it did not use.
func (q *QP) turnOver() {
	if q.woken {
		q.woken = false
		q.win.reserved -= int(q.req.wants)
		q.win.wake()
	}
}

func keyOf(r *frame.Route) windowKey { return windowKey{r.Dst, r.Priority} }

// windowTo returns the window of a route's packets.
func (e *Engine) windowTo(to *frame.Route) *window {
	k := keyOf(to)
	w := e.windows[k]
	if w == nil {
		w = newWindow(k, congestion.NewWindow(to.Near, &e.cfg.Window))
		e.windows[k] = w
	}
	w.users++
	return w
}

func (e *Engine) leaveWindow(q *QP) {
	w := q.win
	if w == nil {
		return
	}
	w.counted(-int(q.req.counted))
	q.req.counted = 0
	if q.waiting() {
		w.waiting.remove(q)
	}
	if q.woken {
		q.woken = false
		w.reserved -= int(q.req.wants)
	}
	q.win = nil
	if w.users--; w.users == 0 {
		delete(e.windows, w.key)
		return
	}
	w.wake()
}

// moveWindow follows a change of the route's destination or priority.
func (q *QP) moveWindow() {
	if q.win.key == keyOf(q.route) {
		return
	}
	q.eng.leaveWindow(q)
	q.win = q.eng.windowTo(q.route)
	q.recount(false)
	q.activate()
}

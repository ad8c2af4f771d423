package transport

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/transport/congestion"
)

// window is the congestion window for one destination address. All QPs with that destination share it,
// because they overflow the same receive buffer.
type window struct {
	congestion.Window
	dst      netip.Addr
	keeper   keeper
	users    int
	waiting  qpList
	reserved int // packets of room for QPs that were woken but have not had their turn
}

func newWindow(dst netip.Addr, near bool, cfg *congestion.Config) *window {
	return &window{Window: congestion.New(near, cfg), dst: dst, waiting: qpList{kind: waitingKind}}
}

// wake activates QPs that wait for this window as long as there is the room that they want, in order, the
// longest waiting first. A burst costs the system little more than a packet, so room is not handed out in
// crumbs.
func (w *window) wake() {
	for q := w.waiting.head; q != nil; q = w.waiting.head {
		taken := w.InFlight + w.reserved
		if taken > 0 && w.Size-taken < q.wants {
			return
		}
		w.waiting.remove(q)
		w.reserved += q.wants
		q.woken = true
		q.activate()
	}
}

// turnOver returns the room for which q was woken and that it did not use.
func (q *QP) turnOver() {
	if q.woken {
		q.woken = false
		q.win.reserved -= q.wants
		q.win.wake()
	}
}

// windowTo returns the window shared by the QPs to a route's destination.
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
	w.InFlight -= q.counted
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

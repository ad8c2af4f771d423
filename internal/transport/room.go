package transport

// room returns how many packets the congestion window allows, if that is at least want or nothing is in
// flight. Otherwise it is 0, and q queues behind those already waiting. A QP without an ACK timer can
// never remove lost packets from the shared window, so it only has a limit of its own.
func (q *QP) room(want int) int {
	w := q.win
	if w == nil {
		return maxOutstanding // UC: nothing tells what has arrived
	}
	switch {
	case q.req.probing:
		return 1 // already counted
	case q.req.selective.on:
		return int(q.req.selective.end.Diff(q.req.snd)) // these too
	case q.flight() >= 2*w.size:
		return 0 // the gap must be closed first; then there will be an acknowledgement
	}
	if q.attr.Timeout == 0 {
		return w.most - int(q.req.snd.Diff(q.req.una))
	}
	taken := w.inFlight + q.onTheWay() - int(q.req.counted) + w.reserved
	if q.woken {
		taken -= int(q.req.wants)
	}
	n := w.size - taken
	if taken == 0 || n >= want && (q.woken || w.waiting.head == nil) {
		return n
	}
	if !q.waiting() {
		q.turnOver()
		q.req.wants = int32(want)
		w.waiting.push(q)
	}
	return 0
}

// share returns how much room r wants for its packets of this turn: a burst, but no more than leaves room
// for some others.
func (q *QP) share(r *request, bytes int) int {
	if q.win == nil || r.packets-q.req.idx == 1 || bytes < 2*q.mtu { // last packets, and turns of a rate, without a division
		return 1
	}
	burst := min(q.eng.cfg.MaxBurst, bytes/q.mtu, int(r.packets-q.req.idx))
	return max(min(burst, q.part()), 1)
}

// ackEvery returns after how many packets within a message an acknowledgement is requested, so that the
// window moves before it is used up. An acknowledgement costs both sides as much as a dozen large packets.
func (q *QP) ackEvery() uint8 {
	return uint8(min(max(q.part(), 1), 128))
}

// part returns how much of the window is for q at a time.
func (q *QP) part() int { return q.win.part(q.eng.cfg.MaxBurst) }

// recount updates the number of q's packets in its window. acked means that a decrease is due to an
// acknowledgement.
func (q *QP) recount(acked bool) {
	if q.attr.Timeout == 0 || q.win == nil || q.req.probing {
		return
	}
	flight := q.onTheWay()
	d := flight - int(q.req.counted)
	q.req.counted = int32(flight)
	if d < 0 && acked {
		q.win.acked(q.eng.now, -d)
	} else {
		q.win.counted(d)
	}
	if d < 0 {
		q.win.wake()
	}
}

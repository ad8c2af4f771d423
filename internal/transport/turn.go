package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// allowance is what a turn for requests allows, and what nothing in it changes.
type allowance struct {
	bytes   int   // of payload that may still leave
	every   uint8 // after how many packets within a message an acknowledgement is requested; 0: none ever is
	shared  bool  // others use the window too
	limited bool  // the queue pair has a rate, of its program, of its path or by congestion
}

// allowance returns what a turn of so many bytes of payload allows.
func (q *QP) allowance(bytes int, limited bool) allowance {
	t := allowance{bytes: bytes}
	if q.reliable() {
		t.every, t.shared, t.limited = q.ackEvery(), q.win.users > 1, limited || q.congested()
	}
	return t
}

// transmit gives q its turn: responses first, in PSN order, then requests. more means that it wants
// another turn at once.
func (q *QP) transmit(now clock.Time, out []frame.Out) (n int, more bool) {
	if q.eng.packets != nil {
		return q.transmitTraced(now, out)
	}
	return q.transmitTurn(now, out)
}

func (q *QP) transmitTurn(now clock.Time, out []frame.Out) (n int, more bool) {
	if q.resp.owes() {
		if n, more = q.respond(now, out); n > 0 && q.react != nil {
			q.spent(now, out[:n])
		}
		if n == len(out) {
			return n, true
		}
	}
	var k int
	var again bool
	switch q.typ {
	case command.RC, command.UC, command.XRCInitiator, command.XRCTarget:
		k, again = q.request(now, out[n:])
		q.turnOver()
	case command.UD:
		k, again = q.sendUD(now, out[n:])
	}
	// Short of scratch space, a QP may have stopped with nothing to wake it later.
	return n + k, more || again || q.eng.scratch.full()
}

// request emits request packets of a connected queue pair until something prevents it from continuing.
// more means that only its turn has ended.
func (q *QP) request(now clock.Time, out []frame.Out) (n int, more bool) {
	if !q.sends() {
		return 0, false
	}
	s := q.req
	if (q.state != command.RTS && q.state != command.SQD) || s.rnrWait {
		return 0, false
	}
	limit := min(len(out), q.eng.cfg.MaxBurst)
	if s.probing {
		if s.una != s.snd {
			return 0, false
		}
		limit = 1
	}
	if s.selective.on {
		limit = min(limit, int(s.selective.end.Diff(s.snd)))
	}
	from, bytes := q.turnBytes(now)
	limited := q.Limited()
	if limited {
		bytes = min(bytes, q.allowed(now))
	}
	t := q.allowance(bytes, limited)
	for n < limit && t.bytes > 0 {
		r := q.current()
		if r == nil {
			break
		}
		if r.begun && r.kind == kindLocal {
			q.pass(r)
			continue
		}
		if n == 0 && r.kind != kindLocal && (q.waitsUntil(now, from) || limited && q.throttled(now)) || !r.begun && !q.mayBegin(r) {
			break
		}
		if n > 0 && r.packets > 1 && !r.begun && q.keepWhole(r, limit-n, t.bytes) {
			return q.turned(now, out[:n]), true
		}
		s.srq = r.wr.RemoteQPN
		k := 0
		switch {
		case r.kind == kindData && r.packets == 1:
			k = q.sendOnly(r, &out[n], &t)
		case r.kind == kindData:
			k = q.sendData(r, out[n:limit], &t)
		case r.kind == kindRead:
			k = q.sendRead(r, &out[n])
		case r.kind == kindAtomic:
			k = q.sendAtomic(r, &out[n])
		case r.kind == kindPlaced:
			k = q.sendPlaced(r, &out[n])
		case r.kind == kindLocal:
			q.runLocal(r)
			q.pass(r)
			q.retire()
			if s.stopped || q.state != command.RTS {
				return n, false
			}
			continue
		}
		if k == 0 {
			break
		}
		n += k
		if limited {
			t.bytes -= k * (ib.BTHLen + outerLen)
		}
	}
	more = n > 0 && (n == limit || t.bytes <= 0) && !s.probing
	n = q.turned(now, out[:n])
	return n, more && !q.usedUp(now)
}

// keepWhole reports whether a message is left for the next turn because it fits into one turn, but not
// into the rest of this one. If it began in the middle of a turn its bursts would be cut in the middle, as
// would those of all messages behind it.
func (q *QP) keepWhole(r *request, packets, bytes int) bool {
	c := &q.eng.cfg
	return (int(r.packets) > packets || r.length > uint64(bytes)) && int(r.packets) <= c.MaxBurst && r.length <= uint64(c.MaxBurstBytes)
}

// turned records that packets were made in a turn, and returns their number.
func (q *QP) turned(now clock.Time, out []frame.Out) int {
	n := len(out)
	if n > 0 && q.react != nil {
		q.spent(now, out)
	}
	if n > 0 && q.Limited() {
		q.charge(now, wireBytes(out))
	}
	switch {
	case n == 0:
	case q.typ == command.UC:
		q.departed()
	case q.state == command.Err: // the memory of a later packet is gone
	default:
		q.sentAgain(now)
		q.recount(false)
		q.req.sentAt = now
		q.armAck(now)
	}
	return n
}

// pass advances to the request after r.
func (q *QP) pass(r *request) {
	q.req.cur, q.req.idx = r.next, 0
}

// mayBegin reports whether a request may begin now. A fence waits for the reads and atomics before it (IBA
// 10.8.3.3); in SQD nothing may begin.
func (q *QP) mayBegin(r *request) bool {
	if q.state != command.RTS {
		return false
	}
	return r.wr.Flags&ring.Fence == 0 || q.req.reads == 0
}

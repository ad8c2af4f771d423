package transport

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// answerTime is how long ACKs that are the only thing to send wait for consecutive messages, each of which
	// the program may answer.
	answerTime = 10 * time.Microsecond
	// fewPackets are a message and an acknowledgement, not a stream.
	fewPackets = 2
	// trailTime is how long an ACK may wait after the program's answer to the acknowledged message, if the peer
	// may continue with another message: then one ACK covers both. Sending it takes as long as sending the
	// answer, and the next message would wait unseen meanwhile.
	trailTime = 14 * time.Microsecond
	// trailMost is for how long, and trailRow for how many messages, ACKs are replaced by later ones: a program
	// with room for just a few requests would have to wait for one for trailTime.
	trailMost = 60 * time.Microsecond
	trailRow  = 12
	// After trailMisses consecutive ones that waited in vain, trailPause ones leave with the next turn of the
	// loop in which nothing arrives (Quiet): the other end may be in this process, and its program waiting for
	// the answer. If nobody drove the loop for trailLate meanwhile, trailHaste are sent at once, doubled at each
	// recurrence, up to trailHaste<<trailHastes.
	trailMisses = 2
	trailPause  = 256
	trailHaste  = 16
	trailHastes = 9
	trailLate   = 100 * time.Microsecond
)

// trailing is the ACK that follows an answer later, at most one of an engine.
type trailing struct {
	q      *QP        // whose it is; nil: there is none
	soon   bool       // it leaves as soon as nothing arrives
	since  clock.Time // when the answer was sent
	due    clock.Time // when it leaves at the latest
	first  clock.Time // since when none was sent; 0: the last one was
	row    int        // number that trailed since then
	misses int
	pause  int // remaining ones that do not wait for the next message
	haste  int // remaining ones that are sent at once
	late   int // how often nobody drove the loop recently
}

// Defers reports whether the turn sends nothing because all that it has is the ACK of whole messages to one QP, and
// the program may be about to answer: messages arrive one by one, each in a turn of its own. A driver that asks may
// save itself Transmit, which asks too.
func (e *Engine) Defers(now clock.Time) bool {
	few := e.arrived > 0 && e.arrived <= fewPackets
	e.arrived = 0
	if !few || e.driver == nil || !e.onlyAcknowledges() {
		e.deferred = 0
		return false
	}
	if e.deferred == 0 {
		e.deferred = now
	}
	if now.Sub(e.deferred) < answerTime {
		return true
	}
	e.deferred = 0
	return false
}

// onlyAcknowledges reports whether the only thing to send is the ACK of whole messages to one QP, whose program makes this
// turn. The requester is not waiting for anything else, except perhaps for an answer from the program here.
func (e *Engine) onlyAcknowledges() bool {
	q := e.active.only()
	if q == nil || q.attendance() != driven || len(e.unsent) > 0 || len(e.last) > 0 || e.mads.waiting|e.notices.waiting != 0 {
		return false
	}
	if e.trail.q != nil && e.trail.q != q {
		return false
	}
	s := q.resp
	if !s.ack || s.nak || s.pending > 0 || s.msg != msgNone || q.req.cur != nil || q.state != command.RTS {
		return false
	}
	posted, err := q.sq.Pending()
	return posted == 0 && err == nil
}

// answerFirst lets the single request of a turn of two packets overtake the ACK before it, if their programs poll. Their
// PSNs belong to different directions (IBA 9.7.1). Otherwise the order stays as hardware adapters have it: some verbs
// programs, such as perftest's ib_send_lat -e, rely on the completion of a send coming before that of its answer. If
// both packets are of one QP, the ACK may trail. makers are the QPs that made the packets. It returns the number of packets
// that leave.
func (e *Engine) answerFirst(now clock.Time, out []frame.Out, makers [2]*QP) int {
	for _, q := range makers {
		if q == nil || q.attendance() == unattended {
			return 2
		}
	}
	if opcode(&out[0]) != ib.RCAcknowledge || opcode(&out[1]) > ib.RCWriteOnlyImmediate {
		return 2
	}
	out[0], out[1] = out[1], out[0]
	q := makers[0]
	if q != makers[1] || q.active() || !plainACK(&out[1]) || !e.trail.takes(now) {
		return 2
	}
	e.trail.q = q
	e.counters.ACKsSent--
	return 1
}

func opcode(o *frame.Out) ib.Opcode { return ib.BTH(o.Head[frame.HeadRoom:]).Opcode() }

// plainACK reports whether an acknowledge packet is no NAK.
func plainACK(o *frame.Out) bool {
	return ib.AETH(o.Head[frame.HeadRoom+ib.BTHLen:]).Syndrome().IsACK()
}

// takes reports whether the ACK behind an answer that leaves now is to trail, and until when.
func (t *trailing) takes(now clock.Time) bool {
	if t.q != nil {
		return false
	}
	if t.haste > 0 {
		t.haste--
		return false
	}
	if t.first == 0 {
		t.first, t.row = now, 0
	}
	if now.Sub(t.first) > trailMost || t.row == trailRow {
		t.first = 0
		return false
	}
	t.row++
	if t.soon = t.pause > 0; t.soon {
		if t.pause--; t.pause == 0 {
			t.late = max(t.late-1, 0)
		}
	}
	t.since, t.due = now, now.Add(trailTime)
	return true
}

// Quiet tells the engine that nothing has arrived in this turn of the loop, at any engine. It reports whether Transmit
// has something to send because of that.
func (e *Engine) Quiet(now clock.Time) bool {
	t := &e.trail
	if t.q == nil || !t.soon {
		return false
	}
	e.now, t.due = now, now
	return true
}

// until returns when the engine must run for the trailing ACK, of which there is one.
func (t *trailing) until() clock.Time {
	if t.soon {
		return t.since
	}
	return t.due
}

// sendTrailing adds the trailing ACK, if it is of this priority, to the n packets of a turn, behind them, or by itself
// when it is due. It returns the new number of packets.
func (e *Engine) sendTrailing(now clock.Time, priority uint8, out []frame.Out, n int) int {
	t := &e.trail
	q := t.q
	if q == nil || q.priority != priority || n == len(out) || n == 0 && now < t.due {
		return n
	}
	t.q, t.first = nil, 0
	if !t.soon {
		t.misses++
	}
	if t.misses >= trailMisses {
		t.misses, t.pause = 0, trailPause
	}
	if now.Sub(t.since) > trailLate {
		t.haste = trailHaste << t.late
		t.late = min(t.late+1, trailHastes)
	}
	q.resp.ack = true
	return n + e.noteSent(q, out[n:], q.acknowledge(out[n:]))
}

// covered records that another packet acknowledges what the trailing ACK of q would.
func (t *trailing) covered(q *QP) {
	if t.q == q {
		t.q, t.misses = nil, 0
	}
}

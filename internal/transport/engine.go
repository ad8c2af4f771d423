package transport

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/numbers"
	"github.com/softvpi/softvpi/internal/trace"
	"github.com/softvpi/softvpi/internal/transport/congestion"
	"github.com/softvpi/softvpi/internal/wakeup"
	"github.com/softvpi/softvpi/wire/ib"
)

// Engine is the transport of one adapter: its QPs and what they share.
type Engine struct {
	// What the turns of connected queue pairs use: Prefetch asks for it by ranges of fields, in this order.

	cfg     Config
	mem     *memory.Table
	now     clock.Time // the time last passed in
	table   table
	timers  timers // retryTimer
	paced   timers // paceTimer
	active  turns
	notices notices
	// congestion is what the engine does about marks and notifications; it is off unless SetCongestion is called.
	congestion congestion.Settings

	received     *QP            // the QP of the last packet with a payload
	receivedOp   ib.Opcode      // of that packet
	early        bool           // send what was handed out before making more
	lossless     uint8          // priorities that lose nothing, see SetLossless
	receivedHead [sameHead]byte // the beginning of its BTH

	flushHead, flushTail *QP // QPs with requests to flush

	completions queue[Completion]
	events      queue[Event]
	requests    pool[request]
	receives    pool[receive]
	scratch     scratch
	unsent      []*QP  // UC and UD queue pairs whose packets were handed out
	messages    uint64 // serial number of messages with buffers
	copies      copies
	gather      gather
	trace       *trace.Recorder
	packets     *packetNotes // who is told of packets; nil: nobody
	driver      *Program     // whose turn it is; nil: that of no program
	bell        *wakeup.Bell // nil: whoever drives it asks it all the time
	arrived     int          // packets since the last Transmit
	deferred    clock.Time   // since when Transmit defers ACKs; 0: it does not
	trail       trailing
	held        qpList       // QPs that hold an ACK
	locals      qpList       // QPs on the local path
	inPlace     inPlace      // frames of raw packet QPs that were handed out
	last        []lastACK    // of QPs that have ended
	left        queue[Local] // pairs that leave the local path

	// What few of them use, or only a part of.

	windows       map[windowKey]*window
	groups        map[netip.Addr][]*QP
	shared        map[uint32]*SharedQueue
	attached      int
	failed        int    // QPs in Error
	retransmitted uint32 // number of the QP that last sent a packet again
	idle          idle
	coming        *request // room for the next that is taken from a ring
	word          [8]byte  // the result of an atomic, to be written to memory
	grh           [GRHArea]byte
	bounceBuf     []byte
	kept          earlyPool
	violations    []link.Violation
	counters      Counters
	mads          datagrams
	raw           turns // raw packet QPs with something to transmit
	wire          Wire  // what they send to
	rawRoute      frame.Route
	rawChanged    []byte // a received frame as the flags of its raw packet QP have it
}

// New creates an engine. The error is a *command.Error that names the invalid field of cfg.
func New(cfg Config) (*Engine, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	e := &Engine{
		cfg:     cfg,
		mem:     cfg.Memory,
		table:   table{Table: numbers.New[QP](), next: cfg.FirstQPN >> cfg.LoopBits},
		windows: make(map[windowKey]*window),
		active:  turnsOf(activeKind),
		raw:     turnsOf(rawKind),
		groups:  make(map[netip.Addr][]*QP),
		shared:  make(map[uint32]*SharedQueue),
		held:    qpList{kind: heldKind},
		locals:  qpList{kind: localListKind},
		paced:   timers{kind: paceTimer},
	}
	e.coming = new(request)
	e.notices.init()
	e.scratch.init(cfg.MaxBurst)
	return e, nil
}

// Counters returns the engine's counters, which keep counting.
func (e *Engine) Counters() *Counters { return &e.counters }

// SetLossless says at which priorities the wire loses nothing because it pauses instead, bit p for priority p. There only what a responder
// reports and the ACK timer tell of losses, as with a network card: an answer that is late waits in a queue, for as long as others pause
// that, and a packet that was sent again would make the queue longer. At other priorities probes look for losses long before a time-out.
func (e *Engine) SetLossless(priorities uint8) { e.lossless = priorities }

// patient reports whether what is late is not lost.
func (q *QP) patient() bool { return q.eng.lossless>>q.priority&1 != 0 }

// Failed returns how many QPs are in the Error state.
func (e *Engine) Failed() int { return e.failed }

// Retransmitted returns the number of the QP that last sent a packet again, 0 if none did.
func (e *Engine) Retransmitted() uint32 { return e.retransmitted }

// PKeys returns the partition table, which the caller must not modify.
func (e *Engine) PKeys() []ib.PKey { return e.cfg.PKeys }

// SetPKeys replaces the partition table. QPs keep their index and use the key that is now there; an index
// beyond the table matches nothing.
func (e *Engine) SetPKeys(keys []ib.PKey) {
	e.cfg.PKeys = append([]ib.PKey(nil), keys...)
	for _, q := range e.table.All() {
		q.pkey = e.pkeyAt(q.attr.PKeyIndex)
	}
}

// SetManagement changes Config.Management.
func (e *Engine) SetManagement(k ib.PKey) { e.cfg.Management = k }

func (e *Engine) pkeyAt(index uint32) ib.PKey {
	if uint64(index) >= uint64(len(e.cfg.PKeys)) {
		return 0
	}
	return e.cfg.PKeys[index]
}

// Advance handles the timers that are due.
func (e *Engine) Advance(now clock.Time) {
	e.now = now
	e.sendHeld(now)
	for e.timers.due(now) {
		if q := e.timers.expired(now); q != nil {
			q.timeout(now)
		}
	}
	for e.paced.due(now) {
		if q := e.paced.expired(now); q != nil {
			q.activate()
		}
	}
}

// Deadline returns when Advance must be called next, clock.Never if there is no timer.
func (e *Engine) Deadline() clock.Time {
	due := e.timers.next()
	if len(e.paced.heap) > 0 {
		due = clock.Min(due, e.paced.next())
	}
	if q := e.held.head; q != nil {
		due = clock.Min(due, q.resp.heldUntil)
	}
	if e.trail.q != nil {
		due = clock.Min(due, e.trail.until())
	}
	return due
}

// Pending returns the priorities at which Transmit has something to do now: bit p is set for priority p. For packets
// that were handed out and whose requests now complete any priority will do.
func (e *Engine) Pending() uint8 {
	p := e.active.waiting | e.mads.waiting | e.notices.waiting
	if len(e.last) > 0 {
		p |= e.Parting()
	}
	if t := &e.trail; t.q != nil && t.due <= e.now {
		p |= 1 << t.q.priority
	}
	if p == 0 && e.Lent() {
		return ^p
	}
	return p
}

// Lent reports whether packets were handed out whose requests complete at the next Transmit.
func (e *Engine) Lent() bool { return len(e.unsent) > 0 || len(e.inPlace.runs) > 0 }

// Undelivered reports whether completions or events wait to be taken. Messages on the local path leave them in both
// engines, after their turns: the loop must not sleep on them.
func (e *Engine) Undelivered() bool {
	return e.completions.len() > 0 || e.flushHead != nil || e.events.len() > 0
}

// Idle reports whether the engine has no output and nothing to do by itself: no timer is due, nothing is
// to be sent, and nothing waits to be taken. While an ACK trails it is not idle: a program that then polls as fast as
// it can delays the answer that it waits for, by some 0.1 us across veth.
func (e *Engine) Idle(now clock.Time) bool {
	return e.trail.q == nil && e.Deadline() > now && e.Pending() == 0 && !e.PendingLocal() && !e.Undelivered() &&
		e.copies.queue.len() == 0 && e.mads.in.len() == 0 && e.raw.waiting == 0
}

// crowded reports that the driver is far behind in taking completions. Then the local path must not make
// more of them: a program that keeps posting must not grow the queue without limit.
func (e *Engine) crowded() bool { return e.completions.len() >= maxUndelivered }

// Doorbell tells the engine that work was posted to q. It reports whether there is something to do now: receives wait
// for messages, except that a peer on the local path is told about them if it waits. A requester without credits is told
// about them too, which Pending then reports; that is not urgent, since more of them may follow, and one packet announces
// all.
func (e *Engine) Doorbell(q *QP) bool {
	return q.eng == e && q.workPosted()
}

// Transmit writes packets of a priority for the link to out and returns their number, at most len(out). Consecutive
// packets of one QP are adjacent; QPs take turns. Payloads are valid until the next Transmit.
func (e *Engine) Transmit(now clock.Time, priority uint8, out []frame.Out) int {
	e.now = now
	if e.Defers(now) {
		return 0
	}
	e.completeSent()
	e.scratch.reset()
	e.early = false
	e.reuseFetched()
	n := 0
	if len(e.last) > 0 {
		n = e.sendLastACKs(priority, out)
	}
	if e.notices.waiting>>priority&1 != 0 {
		n += e.sendNotices(priority, out[n:])
	}
	if e.mads.toSend(priority) {
		n += e.sendNAKs(now, priority, out[n:])
		n += e.sendHeldACKs(priority, out[n:])
		e.trail.due = now
		n = e.sendTrailing(now, priority, out, n)
		n += e.sendDatagrams(priority, out[n:])
	}
	active := &e.active.lists[priority]
	turns := 2*len(out) + 64
	var makers [2]*QP // of the first two packets
	for ; turns > 0 && n < len(out) && active.head != nil; turns-- {
		q := active.head
		e.active.pop(priority)
		k, more := q.transmit(now, out[n:])
		for at := n; at < len(makers) && at < n+k; at++ {
			makers[at] = q
		}
		n += k
		if more {
			q.activate()
		}
		if e.scratch.full() || e.early {
			break
		}
	}
	if e.trail.q != nil {
		n = e.sendTrailing(now, priority, out, n)
	}
	if n == 2 {
		n = e.answerFirst(now, out, makers)
	}
	e.counters.OutboundPackets += uint64(n)
	for i := range out[:n] {
		e.counters.OutboundBytes += uint64(out[i].Len() + int(out[i].Pad))
	}
	return n
}

// sendNAKs sends the NAKs of a priority that end QPs before its MADs: the CM disconnects at once, and a requester that
// learned of that first would flush the refused request instead of completing it with its error.
func (e *Engine) sendNAKs(now clock.Time, priority uint8, out []frame.Out) (n int) {
	for q := e.active.lists[priority].head; q != nil && n < len(out); {
		next := q.placeOf(activeKind).next
		if q.resp.nak && q.state == command.Err {
			e.active.remove(q)
			k, more := q.transmit(now, out[n:])
			if n += k; more {
				q.activate()
			}
		}
		q = next
	}
	return n
}

// Completions moves completions out, in order, and returns their number. It also flushes requests of QPs
// in error, as many as fit. Requests of UC and UD queue pairs complete in the next Transmit after the one
// that handed out their packets.
func (e *Engine) Completions(out []Completion) int {
	n := e.completions.take(out)
	if n < len(out) {
		n += e.flush(out[n:])
	}
	return n
}

// Events moves asynchronous events out and returns their number.
func (e *Engine) Events(out []Event) int { return e.events.take(out) }

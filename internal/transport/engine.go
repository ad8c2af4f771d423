package transport

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/wire/ib"
)

// Engine is the transport of one adapter: its QPs and what they share.
type Engine struct {
	cfg      Config
	mem      *memory.Table
	now      clock.Time // as told last
	table    table
	timers   timers
	active   qpList
	windows  map[netip.Addr]*window
	groups   map[netip.Addr][]*QP
	attached int

	received             *QP            // that the last packet with a payload was for
	receivedOp           ib.Opcode      // of that packet
	receivedHead         [sameHead]byte // the beginning of its BTH
	flushHead, flushTail *QP            // QPs with requests to flush

	completions queue[Completion]
	events      queue[Event]
	mads        datagrams
	requests    pool[request]
	receives    pool[receive]
	scratch     scratch
	early       bool    // what was handed out is to leave before more is made
	unsent      []*QP   // UC and UD queue pairs with packets handed out
	word        [8]byte // an atomic's answer on its way to memory
	grh         [GRHArea]byte
	bounceBuf   []byte
	messages    uint64 // serial number of messages with buffers
	copies      copies
	kept        earlyPool
	gather      gather
	violations  []link.Violation
	counters    Counters
}

// New makes an engine. The error is a *command.Error that names the field of
// cfg that is wrong.
func New(cfg Config) (*Engine, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	e := &Engine{
		cfg:     cfg,
		mem:     cfg.Memory,
		table:   newTable(cfg.LoopBits),
		windows: make(map[netip.Addr]*window),
		groups:  make(map[netip.Addr][]*QP),
	}
	e.table.next = cfg.FirstQPN >> cfg.LoopBits & (uint32(len(e.table.pages))*pageSize - 1)
	e.scratch.init(cfg.MaxBurst)
	return e, nil
}

// Counters returns the engine's counters; they go on counting.
func (e *Engine) Counters() *Counters { return &e.counters }

// PKeys are the partition table. The caller changes nothing in it.
func (e *Engine) PKeys() []ib.PKey { return e.cfg.PKeys }

// SetPKeys replaces the partition table. QPs keep their index and take the key
// that stands there now; an index beyond the table matches nothing.
func (e *Engine) SetPKeys(keys []ib.PKey) {
	e.cfg.PKeys = append([]ib.PKey(nil), keys...)
	e.table.each(func(q *QP) { q.pkey = e.pkeyAt(q.attr.PKeyIndex) })
}

func (e *Engine) pkeyAt(index uint32) ib.PKey {
	if uint64(index) >= uint64(len(e.cfg.PKeys)) {
		return 0
	}
	return e.cfg.PKeys[index]
}

// Advance carries out the timers that are due.
func (e *Engine) Advance(now clock.Time) {
	e.now = now
	for q := e.timers.expired(now); q != nil; q = e.timers.expired(now) {
		q.timeout(now)
	}
}

// Deadline returns when Advance is wanted next, clock.Never for no timer.
func (e *Engine) Deadline() clock.Time { return e.timers.next() }

// Pending reports whether Transmit has something to do now.
func (e *Engine) Pending() bool {
	return e.active.head != nil || len(e.unsent) > 0 || e.mads.toSend()
}

// OnlyAcknowledges reports whether all there is to send is the acknowledgement of
// whole messages to one QP. Its requester has nothing else to wait for, and may well
// be waiting for what the program here answers.
func (e *Engine) OnlyAcknowledges() bool {
	q := e.active.head
	if q == nil || q.places[activeKind].next != nil || len(e.unsent) > 0 || e.mads.toSend() || q.peer != nil {
		return false
	}
	s := &q.resp
	return s.ack && !s.nak && s.pending == 0 && s.msg == msgNone && q.req.cur == nil && q.state == command.RTS
}

// Undelivered reports whether completions or events wait to be taken. Messages
// on the local path leave them with the engine of the other end too, which may
// have had its turn already: the loop must not sleep on them.
func (e *Engine) Undelivered() bool {
	return e.completions.len() > 0 || e.flushHead != nil || e.events.len() > 0
}

// Idle reports whether there is nothing to be had from the engine, and nothing for it to do by itself: no timer is due, nothing is to
// be sent, and nothing waits to be taken.
func (e *Engine) Idle(now clock.Time) bool {
	return e.Deadline() > now && !e.Pending() && !e.Undelivered() && e.copies.queue.len() == 0 && e.mads.in.len() == 0
}

// crowded reports that the driver is so far behind with taking completions that
// nothing is moved on the local path that would make more of them: a program that
// posts and posts must not make the queue grow for ever.
func (e *Engine) crowded() bool { return e.completions.len() >= maxUndelivered }

// Doorbell says that work was posted to q. It is also the time to tell
// that receives were posted where a local peer waits for them. It reports whether
// there is something to do now: receives of a QP on the wire wait for messages.
// A requester without credits is to hear of them, which Pending then says; there is
// no haste, as more of them may follow, and one packet tells of all.
func (e *Engine) Doorbell(q *QP) bool {
	return q.eng == e && q.workPosted()
}

// Transmit writes packets for the link into out and returns how many, at most
// len(out). Consecutive packets of one QP stand together; QPs take turns. The
// messages of QPs on the local path move here as well. Payloads are valid until
// the next Transmit.
func (e *Engine) Transmit(now clock.Time, out []frame.Out) int {
	e.now = now
	e.completeSent()
	e.scratch.reset()
	e.early = false
	e.reuseFetched()
	n := e.sendNAKs(now, out)
	n += e.sendDatagrams(out[n:])
	turns := 2*len(out) + 64
	local := localBudget
	for ; turns > 0 && n < len(out) && e.active.head != nil; turns-- {
		q := e.active.head
		e.active.remove(q)
		if q.peer != nil && (e.crowded() || q.peer.eng.crowded()) {
			q.activate()
			break
		}
		if q.peer != nil {
			q.turnOver()
			used, more := q.moveLocal(now)
			if local -= used; more {
				q.activate()
			}
			if local <= 0 {
				break
			}
			continue
		}
		k, more := q.transmit(now, out[n:])
		n += k
		if more {
			q.activate()
		}
		if e.scratch.full() || e.early {
			break
		}
	}
	e.counters.OutboundPackets += uint64(n)
	for i := range out[:n] {
		e.counters.OutboundBytes += uint64(out[i].Len() + int(out[i].Pad))
	}
	return n
}

// sendNAKs sends what ended a QP in front of the MADs: the CM disconnects at once,
// and a requester that learns of that first flushes the request that was refused
// instead of completing it with its error.
func (e *Engine) sendNAKs(now clock.Time, out []frame.Out) (n int) {
	if !e.mads.toSend() {
		return 0
	}
	for q := e.active.head; q != nil && n < len(out); {
		next := q.places[activeKind].next
		if q.resp.nak && q.state == command.Err && q.peer == nil {
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

// Completions moves completions out, in the order in which they happened, and
// returns their number. Requests of QPs in error flush here, as many as fit.
// Requests of UC and UD queue pairs complete with the next Transmit after the one
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

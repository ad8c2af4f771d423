package cm

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/numbers"
	"github.com/softvpi/softvpi/internal/trace"
	"github.com/softvpi/softvpi/internal/wakeup"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// ID is a local communication ID, of a listener or a connection. Zero means none.
type ID uint32

// maxReplies limits the answers that wait for Transmit. A peer that gets none asks again.
const maxReplies = 1024

// Engine is the connection manager of one adapter. Only one goroutine at a time may call it.
type Engine struct {
	cfg      Config
	counters Counters
	trace    *trace.Recorder

	ids       numbers.Table[conn]
	peers     map[peerKey]*conn
	qpns      map[qpnKey]*conn
	ports     ports
	listeners map[portKey][]*conn
	timers    timers
	bell      *wakeup.Bell // nil: whoever drives it asks it all the time

	nextTID  uint64
	halfOpen int
	half     shares // of the half-open connections
	opening  line   // of the half-open connections
	asked    asked
	refusals struct { // for want of room, answered
		since clock.Time
		n     int
	}
	lingering int

	buffers []*[mad.Len]byte // buffers of answered messages, for reuse
	scratch struct {
		bytes [mad.Len]byte
		req   mad.REQ
		rep   mad.REP
		rtu   mad.RTU
	}
	replies queue[Datagram] // messages that expect no answer
	sendq   queue[*conn]    // those whose message is to be sent
	events  queue[Event]
}

// New creates an engine. The error is a *FieldError.
func New(cfg Config) (*Engine, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Engine{
		cfg: cfg, ids: numbers.New[conn](), peers: map[peerKey]*conn{}, qpns: map[qpnKey]*conn{},
		ports: ports{}, listeners: map[portKey][]*conn{}, half: newShares(),
		nextTID: cfg.Rand(),
	}, nil
}

// SetMTU follows a change of the port's largest path MTU; existing connections keep theirs. An invalid
// code is ignored.
func (e *Engine) SetMTU(mtu ib.MTU) {
	if mtu.Valid() {
		e.cfg.MTU = mtu
	}
}

// SetPKeys replaces the partition table, from which peers may request any key; existing connections keep
// theirs.
func (e *Engine) SetPKeys(keys []ib.PKey) { e.cfg.PKeys = slices.Clone(keys) }

// SetPolicy sets MaxRetries (0: the default) and DisableFlowControl for messages from now on.
func (e *Engine) SetPolicy(maxRetries uint8, disableFlowControl bool) {
	if maxRetries == 0 || maxRetries > defaultMaxRetries {
		maxRetries = defaultMaxRetries
	}
	e.cfg.MaxRetries, e.cfg.DisableFlowControl = maxRetries, disableFlowControl
}

// SetGUID sets the adapter's EUI-64 for messages from now on. There must be no connection.
func (e *Engine) SetGUID(guid uint64) { e.cfg.GUID = guid }

// Counters returns the engine's own counters: read them only.
func (e *Engine) Counters() *Counters { return &e.counters }

// SetTrace has the engine record the states of connections; nil: nothing.
func (e *Engine) SetTrace(r *trace.Recorder) { e.trace = r }

// Deadline returns when Advance must be called next; clock.Never if there is no timer.
func (e *Engine) Deadline() clock.Time {
	if len(e.timers) == 0 {
		return clock.Never
	}
	return e.timers[0].due
}

// Advance handles the timers that are due.
func (e *Engine) Advance(now clock.Time) {
	for len(e.timers) > 0 && e.timers[0].due <= now {
		c := e.timers[0]
		switch {
		case c.expires <= now:
			e.expired(now, c)
		case c.retries == 0:
			e.exhausted(now, c)
		default:
			c.retries--
			e.counters.Retransmitted++
			c.retryAt = now.Add(c.wait())
			e.set(c)
			e.enqueue(c)
		}
	}
}

// wait returns how long the peer has to answer the repetition sent now.
func (c *conn) wait() time.Duration {
	if c.state != stateDreqSent || c.retries == 0 {
		return c.interval
	}
	c.pace = min(2*c.pace, c.interval)
	return c.pace
}

// expired handles the end of the time that a state may last.
func (e *Engine) expired(now clock.Time, c *conn) {
	switch c.state {
	case stateReqSent, stateSidrSent:
		e.unanswered(c, FailureTimeout)
	case stateReqReceived:
		e.reject(c, mad.REJOfREQ, mad.RejectTimeout, nil)
		e.failRequest(c, 0)
	case stateSidrReceived:
		e.reply(c.route(), c.sidrRep(mad.SIDRRejected, 0, 0, nil))
		e.failRequest(c, 0)
	case stateRepReceived:
		e.reject(c, mad.REJOfREP, mad.RejectTimeout, nil)
		e.counters.FailedAttempts++
		e.event(c, Event{Type: EventConnectError})
		e.timewait(now, c)
	case stateRepSent:
		e.exhausted(now, c)
	case stateDreqSent:
		e.exhausted(now, c)
	case stateTimewait:
		e.event(c, Event{Type: EventTimewaitExit})
		e.finish(c)
	default: // stateLinger
		e.finish(c)
	}
}

// exhausted handles a message that nobody answered.
func (e *Engine) exhausted(now clock.Time, c *conn) {
	switch c.state {
	case stateReqSent, stateSidrSent:
		e.unanswered(c, FailureTimeout)
	case stateRepSent:
		e.reject(c, mad.REJOfOther, mad.RejectTimeout, nil)
		e.counters.FailedAttempts++
		e.event(c, Event{Type: EventUnreachable, Failure: FailureTimeout})
		e.timewait(now, c)
	case stateDreqSent:
		e.tell(c, Event{Failure: FailureTimeout})
		e.timewait(now, c)
	}
}

// Idle reports whether no timer is due and nothing waits to be taken.
func (e *Engine) Idle(now clock.Time) bool {
	return e.Deadline() > now && e.events.len() == 0 && e.replies.len() == 0 && e.sendq.len() == 0
}

// SetBell gives the engine the bell that it rings when there is something to do after a time in which it rested; nil: it rings none.
func (e *Engine) SetBell(b *wakeup.Bell) { e.bell = b }

// Rests reports whether nothing waits to be taken: the engine has nothing to do before its Deadline. What changes that rings the bell, as
// does a timer that is set.
func (e *Engine) Rests() bool {
	return e.events.len() == 0 && e.replies.len() == 0 && e.sendq.len() == 0
}

// set sets the timer of c after retryAt or expires changed.
func (e *Engine) set(c *conn) {
	e.timers.set(c)
	e.bell.Ring()
}

// Transmit moves datagrams to be sent to out and returns their number.
func (e *Engine) Transmit(out []Datagram) int {
	n := e.replies.take(out)
	for n < len(out) && e.sendq.len() > 0 {
		var next [1]*conn
		e.sendq.take(next[:])
		c := next[0]
		c.queued = false
		if c.message == nil { // answered before it was sent
			continue
		}
		out[n] = datagram(c.route(), c.message)
		n++
	}
	e.counters.Sent += uint64(n)
	return n
}

// Events moves events to out and returns their number.
func (e *Engine) Events(out []Event) int {
	return e.events.take(out)
}

// enqueue queues the message of c for sending.
func (e *Engine) enqueue(c *conn) {
	if !c.queued {
		c.queued = true
		e.sendq.add(c)
		e.bell.Ring()
	}
}

// ask sends a message of c, and repeats it until it is answered.
func (e *Engine) ask(now clock.Time, c *conn, m mad.Message) {
	e.keep(c, m)
	e.repeat(now, c)
}

// repeat is ask for the message that c has.
func (e *Engine) repeat(now clock.Time, c *conn) {
	c.retries = c.maxRetries
	c.askedAt, c.retryAt = now, now.Add(c.interval)
	e.set(c)
	e.enqueue(c)
}

// quiet ends the repetitions.
func (e *Engine) quiet(c *conn) {
	e.drop(c)
	c.retryAt, c.expires = clock.Never, clock.Never
	e.set(c)
}

// reply sends a message once.
func (e *Engine) reply(to Peer, m mad.Message) {
	encode(&e.scratch.bytes, m)
	e.send(to, &e.scratch.bytes)
}

func (e *Engine) send(to Peer, m *[mad.Len]byte) {
	if e.replies.len() >= maxReplies {
		e.counters.OutputDropped++
		return
	}
	e.replies.add(datagram(to, m))
	e.bell.Ring()
}

func datagram(to Peer, m *[mad.Len]byte) Datagram {
	return Datagram{Local: to.Local, Remote: to.Remote, RemoteQPN: uint32(ib.QPGSI), SL: to.SL, PKey: to.PKey, Global: to.Global,
		Marks: to.Marks, MAD: *m}
}

func encode(b *[mad.Len]byte, m mad.Message) {
	clear(b[:])
	m.Append(b[:0])
}

// maxBuffers limits the message buffers kept for reuse.
const maxBuffers = 256

// keep makes m the message of c.
func (e *Engine) keep(c *conn, m mad.Message) {
	if last := len(e.buffers) - 1; c.message == nil && last >= 0 {
		c.message = e.buffers[last]
		e.buffers = e.buffers[:last]
	}
	if c.message == nil {
		c.message = new([mad.Len]byte)
	}
	encode(c.message, m)
}

// drop discards the message of c.
func (e *Engine) drop(c *conn) {
	if c.message != nil && len(e.buffers) < maxBuffers {
		e.buffers = append(e.buffers, c.message)
	}
	c.message = nil
}

// event queues an event of c, after filling in the common fields.
func (e *Engine) event(c *conn, v Event) {
	v.ID, v.Context, v.Space = c.id, c.context, c.space
	v.Local, v.Remote = c.local, c.remote
	v.Conn, v.PeerFlowControl = c.attr, c.peerFlow
	e.events.add(v)
	e.bell.Ring()
}

// enter changes the state and updates the counts that depend on it.
func (e *Engine) enter(c *conn, s state) {
	count := func(n *int, was, is bool) {
		if was {
			*n--
		}
		if is {
			*n++
		}
	}
	count(&e.halfOpen, c.state.halfOpen(), s.halfOpen())
	e.count(c, c.state.halfOpen(), s.halfOpen())
	count(&e.lingering, c.state == stateLinger, s == stateLinger)
	if c.state == stateEstablished {
		e.counters.Active--
	}
	if s == stateEstablished {
		e.counters.Active++
	}
	if c.state != s {
		e.trace.Note(trace.ConnectionState, uint32(c.id), uint32(c.state), uint32(s))
	}
	c.state = s
}

// add creates a conn with a new id, a random one: it is the communication ID that a peer's messages, and
// those of whoever forges them, must name.
func (e *Engine) add(space command.PortSpace, context uint64) *conn {
	id := uint32(e.cfg.Rand())
	for !e.ids.Free(id) {
		id++
	}
	c := &conn{id: ID(id), space: space, context: context, claimed: true, retryAt: clock.Never, expires: clock.Never}
	e.ids.Put(id, c)
	return c
}

// finish ends the activity of an id. The id remains until its program destroys it; if no program has it,
// it is released at once.
func (e *Engine) finish(c *conn) {
	e.quiet(c)
	e.enter(c, stateDone)
	e.forgetPeer(c)
	e.forgetQPN(c)
	c.rtu = nil
	if c.destroyed || !c.claimed {
		e.release(c)
	}
}

// release removes every trace of c.
func (e *Engine) release(c *conn) {
	e.unlist(c)
	e.ports.release(c.binding)
	c.binding = nil
	e.ids.Remove(uint32(c.id))
}

// unlist removes c from its listener's backlog.
func (e *Engine) unlist(c *conn) {
	if c.listener == nil {
		return
	}
	w := c.listener.listen
	delete(w.waiting, c.id)
	w.shares.add(c.at.Remote, -1)
	c.listener = nil
}

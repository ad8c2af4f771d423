package transport

import (
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport/congestion"
	"github.com/softvpi/softvpi/wire/ib"
)

// QP is a queue pair. It belongs to its engine; the methods are for the engine's driver.
type QP struct {
	eng   *Engine
	num   uint32
	typ   command.QPType
	state command.QPState

	srq, signalAll bool
	unsent         bool      // in the engine's list of packets without acknowledgement
	woken          bool      // taken from its window's waiting list for the coming turn
	flushing       bool      // in the engine's flush list
	reached        bool      // a packet of its peer has arrived
	blockSelf      bool      // gets nothing of what it sends to its own groups
	frames         uint8     // of a raw packet QP: flags of command.FrameQPFlags
	service        ib.Opcode // what the opcodes of its packets add to those of RC
	listed         uint8     // bit k: it is in a list of kind k
	maxInline      uint16

	places    [placesOfQP]place
	flushNext *QP

	deadlines [timerKinds]clock.Time // clock.Never: none
	timers    [timerKinds]int32      // where it is in the engine's heaps, -1: not in it

	pd             memory.PD
	domain         uint32 // XRC
	sendCQ, recvCQ CQRef
	sq             SendQueue
	rq             RecvQueue
	context        uint64
	program        *Program

	attr    attributes
	copying int32 // copies in progress
	route   *frame.Route
	// priority is that of route; for UD, that of the next datagram. It and the small fields behind it fill a word: a QP must not grow
	// into the next size class of the heap, of 384 bytes.
	priority uint8
	capable  bool         // its packets say that switches may mark them
	ecn      uint8        // what they would say else
	carrier  path.Carrier // who carries its messages
	pkey     ib.PKey
	// srcPort is the UDP port from which the peer sends; 0: not known yet, not checked, or not RoCE v2.
	srcPort uint16
	mtu     int

	win    *window
	react  *congestion.ReactionPoint    // nil: nothing has limited its rate
	answer congestion.NotificationPoint // of packets for it that were marked
	pair   *Pair                        // with the other end, if that is on an engine of the same loop
	extra  *extra                       // nil: it has none of that
	owesAt uint8                        // the priority at which it owes a notification

	req  *requester // the halves: see halves.go
	resp *responder
}

// echo is by what a QP knows what it has sent itself.
type echo struct {
	cast netip.Addr  // UD: address from which it last sent to a group
	self frame.Route // of the frames of a raw packet QP that must not come back to it
}

// Number returns the QP number.
func (q *QP) Number() uint32 { return q.num }

// Type returns the transport service.
func (q *QP) Type() command.QPType { return q.typ }

// State returns the state.
func (q *QP) State() command.QPState { return q.state }

// Context returns the value that completions and events carry.
func (q *QP) Context() uint64 { return q.context }

// Route returns the route of a connected QP's packets, nil before RTR.
func (q *QP) Route() *frame.Route { return q.route }

// DestQPN returns the number of the QP that this one is connected to.
func (q *QP) DestQPN() uint32 { return q.attr.DestQPN }

// CreateQP creates a QP in the Reset state. Errors are ErrNumbers and *command.Error (a field of c is
// invalid, or the engine already has MaxQPs).
func (e *Engine) CreateQP(now clock.Time, c QPConfig) (*QP, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if e.table.count >= e.cfg.MaxQPs {
		return nil, command.Errorf(command.Exhausted, "QPs: limit %d", e.cfg.MaxQPs)
	}
	if c.Number == 0 {
		n, err := e.AllocateNumber(now)
		if err != nil {
			return nil, err
		}
		c.Number = n
	}
	if c.Number <= uint32(ib.QPGSI) || c.Number > maxQPN || c.Number&(1<<e.cfg.LoopBits-1) != e.cfg.Loop {
		return nil, fieldError("Number", c.Number, "2 to 0xfffffe with the loop's number in its low bits")
	}
	if e.table.Get(c.Number) != nil {
		return nil, command.Errorf(command.InUse, "QP number %#x", c.Number)
	}
	q := &QP{
		eng: e, num: c.Number, typ: c.Type, pd: c.PD, sendCQ: c.SendCQ, recvCQ: c.RecvCQ, sq: c.Send, rq: c.Recv,
		domain: c.Domain, service: serviceOf(c.Type), srq: c.SRQ, signalAll: c.SignalAll, blockSelf: c.BlockSelf,
		context: c.Context, program: c.Program, maxInline: uint16(c.MaxInline),
		deadlines: [timerKinds]clock.Time{clock.Never, clock.Never}, timers: [timerKinds]int32{-1, -1},
	}
	if c.Type == command.RawPacket {
		q.frames = uint8(c.Frames)
		if c.BlockSelf {
			q.listen()
		}
	}
	if c.Tags != nil {
		t := &tagging{list: c.Tags, moves: rendezvous{SendQueue: c.Send}}
		q.extras().tags, q.sq = t, &t.moves
	}
	q.halve()
	e.table.Put(c.Number, q)
	e.table.count++
	return q, nil
}

func (c *QPConfig) check() error {
	if c.Type == command.XRCTarget {
		c.Send, c.SRQ = noSends{}, true
	}
	if c.Type.XRC() {
		c.Recv = noReceives{}
	}
	switch {
	case c.Type < command.RC || c.Type > command.RawPacket:
		return fieldError("Type", uint32(c.Type), "RC, UC, UD, one of XRC or raw packet")
	case c.Send == nil:
		return fieldError("Send", "nil", "a send queue")
	case c.Recv == nil:
		return fieldError("Recv", "nil", "a receive queue")
	case c.Tags != nil && (c.Type != command.RC || !c.SRQ):
		return fieldError("Tags", "set", "a list only for RC with an SRQ")
	case c.MaxInline < 0 || c.MaxInline > ring.MaxInline:
		return fieldError("MaxInline", c.MaxInline, "0 to 1024")
	}
	if c.MaxInline == 0 {
		c.MaxInline = ring.MaxInline
	}
	return nil
}

// Destroy ends a QP in any state: it produces nothing more, not even flushed completions. The number of a
// QP that was connected is not reused for Config.TimeWait.
func (e *Engine) Destroy(now clock.Time, q *QP) {
	if q.eng != e || e.table.Get(q.num) != q {
		return
	}
	connected := q.typ != command.UD && q.typ != command.RawPacket && q.state >= command.RTR
	q.leavePeer()
	q.release()
	e.detachAll(q)
	e.cfg.Memory.ReleaseQP(q.num)
	if e.table.Remove(q.num); connected {
		e.table.rest(q.num, now.Add(e.cfg.TimeWait))
	}
	e.table.count--
	e.dropQueued(q)
	q.leaveError()
	q.state, q.pair = command.Reset, nil
}

// QP returns the QP with this number, nil if there is none.
func (e *Engine) QP(qpn uint32) *QP { return e.table.Get(qpn) }

// Query returns the attributes and state of q.
func (e *Engine) Query(q *QP) command.QPInfo {
	info := command.QPInfo{Attr: q.attr.of(q.state), Type: q.typ, Number: q.num, Path: 1 + uint32(q.carrier)}
	if q.state == command.SQD && !q.drained() {
		info.Draining = 1
	}
	if n, err := q.sq.Pending(); err == nil {
		info.SendPosted = uint32(n + int(q.req.outstanding+q.req.inPlace))
	}
	if n, err := q.rq.Pending(); err == nil {
		info.RecvPosted = uint32(n)
	}
	return info
}

// ackTimeout returns the local ACK timeout; 0 means none. It may be up to four times the attribute's value
// (IBA 9.9.2.1.1). After an expiry it gets longer, because a software peer stalls while its processor runs
// something else: otherwise all retries would fall into one such pause.
func (q *QP) ackTimeout() time.Duration {
	t := ib.AckTimeout(q.attr.Timeout)
	return min(t<<min(q.req.timeouts, 2), max(t, longestPause))
}

// release gives everything that q holds back to the engine: timers, windows, requests, places in lists.
func (q *QP) release() {
	e := q.eng
	q.leaveACK()
	e.trail.covered(q)
	if q.holding() {
		e.held.remove(q)
	}
	if e.received == q {
		e.received = nil
	}
	e.timers.drop(q)
	e.paced.drop(q)
	q.unanswered()
	q.react, q.capable = nil, false
	if q.extra != nil {
		q.extra.bucket = nil
	}
	e.leaveWindow(q)
	q.dropTurns()
	e.unflush(q)
	q.unsent = false
	e.forget(q)
	q.dropRequests()
	q.dropResponder()
}

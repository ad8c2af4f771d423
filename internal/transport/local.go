package transport

import (
	"encoding/binary"
	"errors"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// localBudget is how many bytes the local path moves in one Transmit.
	localBudget = 1 << 20
	// localTurn is how many bytes a QP moves, and localMessages how many messages it starts, before the
	// next one has its turn.
	localTurn     = 256 << 10
	localMessages = 32
	// maxUndelivered is how many completions may wait for the driver before the local path pauses.
	maxUndelivered = 8192
	// localStep is the maximum copied in one piece: it stays in a near cache, and is large because each
	// call to another process's memory costs as much as copying 32 KB.
	localStep = 256 << 10
)

// join puts q on the local path. Nothing in progress is due, so none of it belongs to the peer.
func (q *QP) join() {
	q.stopAwaitingCredit()
	q.dropAllEarly()
	q.carrier = path.ByLoop
	q.resume()
}

// leave returns q to the wire. A half-moved message starts over there, and gets no answer if the peer has ended.
func (q *QP) leave() {
	q.carrier = path.ByPackets
	q.req.opened = false
	q.req.credit.granted = false // nothing was granted meanwhile
	q.activate()
}

// settle returns a pair that leaves the local path to the wire if neither end is within a message. It reports
// whether it did.
func (p *Pair) settle() bool {
	return p.State() == path.Leaving && !p.ends[0].req.opened && !p.ends[1].req.opened && p.step(path.Quiet)
}

// leavePeer returns q and its peer to the wire at once, or as soon as their programs have left them.
func (q *QP) leavePeer() {
	if q.pair != nil {
		q.pair.step(path.Break)
	}
}

// moveLocal gives q its turn on the local path. more means that only its turn has ended.
func (q *QP) moveLocal(now clock.Time) (used int, more bool) {
	s := &q.req
	if q.state != command.RTS && q.state != command.SQD || s.rnrWait {
		return 0, false
	}
	q.peer().eng.now = now
	for range localMessages {
		if q.Parting() && !s.opened {
			return used, false
		}
		r := q.current()
		if r == nil {
			return used, false
		}
		switch {
		case r.kind == kindLocal && r.begun:
			q.pass(r)
			continue
		case !r.begun && !s.opened && !q.mayBegin(r):
			return used, false
		case r.kind == kindLocal:
			q.runLocal(r)
			q.pass(r)
			q.retire()
			if s.stopped {
				return used, false
			}
			continue
		}
		n, again := q.moveMessage(now, r, localTurn-used)
		if used += n; q.carrier != path.ByLoop || q.pair.settle() {
			return used, true // back on the wire
		}
		if !again {
			return used, false
		}
		if used >= localTurn {
			return used, true
		}
	}
	return used, true
}

// moveMessage moves up to budget bytes of r. more is false if q cannot continue.
func (q *QP) moveMessage(now clock.Time, r *request, budget int) (used int, more bool) {
	s, p := &q.req, q.peer()
	if !s.opened {
		if !p.open(r) {
			return 0, q.notTaken(now, r, p)
		}
		s.opened, s.moved = true, 0
	}
	for s.moved < r.length && r.kind != kindAtomic {
		if used >= budget {
			return used, true
		}
		n, err := q.moveStep(r, p)
		if err != nil {
			return used, q.stepFailed(now, r, p, err)
		}
		s.moved += n
		used += int(n)
	}
	s.opened = false
	if !p.close(r) {
		return used, q.notTaken(now, r, p)
	}
	if r.kind == kindAtomic {
		binary.NativeEndian.PutUint64(q.eng.word[:], p.resp.original)
		// The atomic is done and must not be repeated, so
		// its result is placed here even if that ends later.
		if err := q.place(&r.mem, 0, q.eng.word[:], true, r); err != nil {
			return used, q.stepFailed(now, r, p, ownError{err})
		}
	}
	q.countLocal(r, p)
	p.resp.psn = p.resp.psn.Add(r.packets)
	q.begin(r)
	q.finishLocal(now, r)
	return used, q.state == command.RTS || q.state == command.SQD
}

// countLocal counts a message that was moved to or from p.
func (q *QP) countLocal(r *request, p *QP) {
	c := &q.eng.counters
	c.LocalMessages++
	c.LocalBytes += r.length
	from, to := c, &p.eng.counters
	if r.answered() {
		from, to = to, from
	}
	from.LocalOutboundPackets += uint64(r.packets)
	from.LocalOutboundBytes += r.length
	to.LocalInboundPackets += uint64(r.packets)
	to.LocalInboundBytes += r.length
}

// begin marks r as begun.
func (q *QP) begin(r *request) {
	if !r.begun {
		r.begun = true
		if r.answered() {
			q.req.reads++
		}
	}
}

// finishLocal advances the PSNs past r and completes it.
func (q *QP) finishLocal(now clock.Time, r *request) {
	s := &q.req
	end := r.end()
	s.cur, s.idx = r.next, 0
	s.snd, s.max = end, end
	if q.typ == command.UC {
		s.una = end
		q.retire()
		return
	}
	q.progress(now, end)
}

// notTaken handles a message that p did not accept, as if its NAK had come over the wire. It reports
// whether q can continue.
func (q *QP) notTaken(now clock.Time, r *request, p *QP) bool {
	s := &q.req
	s.opened = false
	if q.typ == command.UC {
		// Dropped silently; the sender does not learn of it.
		p.resp.psn = p.resp.psn.Add(r.packets)
		q.begin(r)
		q.finishLocal(now, r)
		return true
	}
	if !p.resp.nak {
		return false // back on the wire
	}
	p.resp.nak, p.resp.nakSent = false, false
	q.begin(r)
	s.cur, s.idx = r, 0
	s.snd = r.first.Next()
	s.max = s.snd
	q.negative(now, r.first, p.resp.syndrome)
	return false
}

// ownError is an error of the requester's memory, not the peer's.
type ownError struct{ error }

// Unwrap makes errors.Is look at the memory's error.
func (e ownError) Unwrap() error { return e.error }

// stepFailed handles a failure of memory in the middle of a message. Memory that cannot be accessed within
// a call sends the pair back to the wire, which can wait for it: the message starts over there.
func (q *QP) stepFailed(now clock.Time, r *request, p *QP, err error) bool {
	s := &q.req
	s.opened = false
	var own ownError
	switch {
	case errors.Is(err, memory.ErrBlock):
		q.leavePeer()
		return false
	case errors.As(err, &own):
		q.eng.counters.RequesterProtectionErrors++
		q.failLater(r, ring.LocalProtection)
		return false
	case q.typ == command.UC:
		p.eng.counters.BrokenUC++
	case r.wr.Op <= ring.OpSendInv:
		p.eng.counters.ResponderProtectionErrors++
		p.endReceive(ring.LocalProtection)
		p.refuse(ib.NAKRemoteOperational)
	default:
		p.refuse(ib.NAKRemoteAccess)
	}
	return q.notTaken(now, r, p)
}

// moveStep moves one piece and returns its length.
func (q *QP) moveStep(r *request, p *QP) (uint64, error) {
	moved := q.req.moved
	n := min(r.length-moved, localStep)
	if r.kind == kindRead {
		return q.readStep(r, p, n)
	}
	data, err := q.localPiece(r, moved, n)
	if err != nil {
		return 0, ownError{err}
	}
	n = uint64(len(data))
	last := moved+n == r.length
	if r.wr.Op != ring.OpWrite && r.wr.Op != ring.OpWriteImm {
		return n, p.resp.recv.mem.write(moved, data, last)
	}
	span, err := p.writeSpan()
	if err != nil {
		return 0, err
	}
	p.resp.write.va += n
	p.resp.write.left -= n
	if last {
		return n, span.Region.WriteLast(span.Addr, data)
	}
	return n, span.Region.Write(span.Addr, data)
}

// readStep moves one piece of an RDMA read.
func (q *QP) readStep(r *request, p *QP, n uint64) (uint64, error) {
	w := &p.resp.write
	span, err := p.eng.mem.Remote(p.pd, p.num, w.rkey, w.va, w.left, memory.RemoteRead)
	if err != nil {
		return 0, err
	}
	data := span.Region.Slice(span.Addr, n)
	if data == nil {
		data = p.eng.bounce()[:n]
		if err := span.Region.Read(data, span.Addr); err != nil {
			return 0, err
		}
	}
	w.va += n
	w.left -= n
	if err := r.mem.write(q.req.moved, data, q.req.moved+n == r.length); err != nil {
		return 0, ownError{err}
	}
	return n, nil
}

// localPiece returns source bytes of a send or write, at most n from off.
func (q *QP) localPiece(r *request, off, n uint64) ([]byte, error) {
	if r.wr.Inline != nil {
		return r.wr.Inline[off : off+n], nil
	}
	if b := r.mem.piece(off, n); b != nil {
		return b, nil
	}
	b := q.eng.bounce()[:n]
	return b, r.mem.read(b, off)
}

// bounce returns a buffer for local copies out of memory that is not mapped.
func (e *Engine) bounce() []byte {
	if e.bounceBuf == nil {
		e.bounceBuf = make([]byte, localStep)
	}
	return e.bounceBuf
}

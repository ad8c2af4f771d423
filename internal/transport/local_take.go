package transport

import (
	"errors"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// localStep is the maximum copied in one piece: it stays in a near cache, and is large because each
// call to another process's memory costs as much as copying 32 KB.
const localStep = 256 << 10

// inbox is the messages that were handed to a responder on the local path. They belong to it until it has answered.
type inbox struct {
	next      *request // the first
	moved     uint64   // bytes of it
	count     int32
	epoch     uint32 // changes with each refusal
	opened    bool   // next was accepted, and is being moved
	refused   bool   // the requester waits for a receive
	available bool   // it is to be told that there is one
}

// takeRun accepts messages, unless the requester handed them over before it knew that one ahead of them was refused.
func (q *QP) takeRun(l *Local) {
	in := &q.resp.inbox
	if l.epoch != in.epoch || l.pair.Carrier() != path.ByLoop {
		return
	}
	if in.count == 0 {
		in.next = l.first
	}
	in.count += int32(l.count)
	q.activate()
}

// drop forgets what was handed over behind a message that is not carried out.
func (in *inbox) drop() {
	in.next, in.count, in.opened = nil, 0, false
	in.epoch++
}

// past goes past the first message. The requester may reuse it as soon as it has the answer.
func (in *inbox) past() {
	in.opened = false
	if in.count--; in.count == 0 {
		in.next = nil
		return
	}
	for in.next = in.next.next; in.next.kind == kindLocal; {
		in.next = in.next.next
	}
}

// respondLocal moves the messages handed to q, and writes what has become of them to out. more means that only its turn
// has ended.
func (q *QP) respondLocal(out []Local) (n, used int, more bool) {
	in, p, to := &q.resp.inbox, q.pair, q.other()
	done := Local{pair: p, to: to, kind: localDone}
	for messages := 0; in.count > 0; messages++ {
		if p.Carrier() != path.ByLoop || p.State() == path.Leaving && !in.opened {
			break
		}
		if messages == localMessages || used >= localTurn || len(out)-n < localRoom {
			more = true
			break
		}
		kind, moved := q.moveLocal(in.next, localTurn-used)
		if used += moved; q.Parting() {
			q.settle()
		}
		switch kind {
		case localDone:
			done.count++
			continue
		case localUnfinished:
			continue
		case localLeft:
			return n + q.emit(out[n:], &done), used, false
		case localAtomic:
			done.value = q.resp.original
		case localRefused:
			done.syndrome, done.epoch = q.resp.syndrome, in.epoch
		case localFault:
			done.epoch = in.epoch
		}
		done.kind = kind
		n += q.emit(out[n:], &done)
		done = Local{pair: p, to: to, kind: localDone}
	}
	return n + q.emit(out[n:], &done), used, more
}

// emit writes an answer to out, if there is one, and returns their number.
func (q *QP) emit(out []Local, l *Local) int {
	if l.kind == localDone && l.count == 0 {
		return 0
	}
	out[0] = *l
	return 1
}

// moveLocal moves up to budget bytes of the first message, and returns what has become of it.
func (q *QP) moveLocal(r *request, budget int) (kind localKind, moved int) {
	in := &q.resp.inbox
	if !in.opened {
		if !q.open(r) {
			return q.notTaken(r), 0
		}
		in.opened, in.moved = true, 0
	}
	for in.moved < r.length && r.kind != kindAtomic {
		if moved >= budget {
			return localUnfinished, moved
		}
		n, err := q.moveStep(r)
		if err != nil {
			return q.stepFailed(r, err), moved
		}
		in.moved += n
		moved += int(n)
	}
	if !q.close(r) {
		return q.notTaken(r), moved
	}
	q.eng.counters.countMoved(r, r.fetches())
	q.resp.psn = q.resp.psn.Add(r.packets)
	in.past()
	if r.kind == kindAtomic {
		return localAtomic, moved
	}
	return localDone, moved
}

// notTaken handles a message that q did not accept.
func (q *QP) notTaken(r *request) localKind {
	s := q.resp
	if q.typ == command.UC {
		// Dropped silently; the sender does not learn of it.
		if s.psn = s.psn.Add(r.packets); q.carrier == path.ByLoop {
			s.inbox.past()
		}
		return localDropped
	}
	if !s.nak {
		return localLeft
	}
	s.nak, s.nakSent = false, false
	s.inbox.drop()
	s.inbox.refused = s.syndrome.IsRNR()
	return localRefused
}

// stepFailed handles a failure of memory in the middle of a message. Memory that cannot be accessed within
// a call sends the pair back to the wire, which can wait for it: the message starts over there.
func (q *QP) stepFailed(r *request, err error) localKind {
	var requesters requesterError
	switch {
	case errors.Is(err, memory.ErrBlock):
		q.blocked()
		return localLeft
	case errors.As(err, &requesters):
		q.resp.inbox.drop()
		return localFault
	case q.typ == command.UC:
		q.eng.counters.BrokenUC++
	case errors.Is(err, memory.ErrAlign):
		q.refuse(ib.NAKInvalidRequest)
	case r.wr.Op <= ring.OpSendInv:
		q.eng.counters.ResponderProtectionErrors++
		q.endReceive(ring.LocalProtection)
		q.refuse(ib.NAKRemoteOperational)
	default:
		q.refuse(ib.NAKRemoteAccess)
	}
	return q.notTaken(r)
}

// requesterError is an error of the requester's memory, not the responder's.
type requesterError struct{ error }

// Unwrap makes errors.Is look at the memory's error.
func (e requesterError) Unwrap() error { return e.error }

// moveStep moves one piece and returns its length.
func (q *QP) moveStep(r *request) (uint64, error) {
	moved := q.resp.inbox.moved
	n := min(r.length-moved, localStep)
	switch r.kind {
	case kindRead:
		return q.readStep(r, n)
	case kindPlaced:
		return n, q.storeWord(r)
	}
	data, err := q.localPiece(r, moved, n)
	if err != nil {
		return 0, requesterError{err}
	}
	n = uint64(len(data))
	last := moved+n == r.length
	if r.wr.Op != ring.OpWrite && r.wr.Op != ring.OpWriteImm {
		return n, q.resp.recv.mem.write(moved, data, last)
	}
	span, err := q.writeSpan()
	if err != nil {
		return 0, err
	}
	q.resp.write.va += n
	q.resp.write.left -= n
	if last {
		return n, span.Region.WriteLast(span.Addr, data)
	}
	return n, span.Region.Write(span.Addr, data)
}

// readStep moves one piece of an RDMA read.
func (q *QP) readStep(r *request, n uint64) (uint64, error) {
	w, moved := &q.resp.write, q.resp.inbox.moved
	span, err := q.eng.mem.Remote(q.pd, q.num, w.rkey, w.va, w.left, memory.RemoteRead)
	if err != nil {
		return 0, err
	}
	data := span.Region.Slice(span.Addr, n)
	if data == nil {
		data = q.eng.bounce()[:n]
		if err := span.Region.Read(data, span.Addr); err != nil {
			return 0, err
		}
	}
	w.va += n
	w.left -= n
	if err := r.wr.mem.write(moved, data, moved+n == r.length); err != nil {
		return 0, requesterError{err}
	}
	return n, nil
}

// localPiece returns source bytes of a send or write, at most n from off.
func (q *QP) localPiece(r *request, off, n uint64) ([]byte, error) {
	if r.wr.Inline != nil {
		return r.wr.Inline[off : off+n], nil
	}
	if b := r.wr.mem.piece(off, n); b != nil {
		return b, nil
	}
	b := q.eng.bounce()[:n]
	return b, r.wr.mem.read(b, off)
}

// bounce returns a buffer for local copies out of memory that is not mapped.
func (e *Engine) bounce() []byte {
	if e.bounceBuf == nil {
		e.bounceBuf = make([]byte, localStep)
	}
	return e.bounceBuf
}

package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// message is the kind of message that a responder is in the middle of.
type message uint8

const (
	msgNone message = iota
	msgSend
	msgWrite
)

// write is an RDMA write in progress.
type write struct {
	va     uint64 // where the next byte goes
	left   uint64 // bytes to come
	rkey   uint32
	length uint32 // of the whole write
}

// responder is the receiving half of an RC or UC queue pair. It fills a size class of the heap, of 192 bytes.
type responder struct {
	psn     ib.PSN // expected next
	msn     uint32 // completed messages, modulo 2^24
	msg     message
	lastWQE bool // the event was raised
	nakSent bool // a NAK for this gap, or this RNR wait, has been sent
	ack     bool // an ACK is to be sent
	nak     bool // a NAK is to be sent
	dry     bool // the requester was last told that no receive is posted
	broken  bool // UC: the rest of the message is to be dropped

	syndrome  ib.Syndrome
	depth     uint8      // maximum number of reads and atomics kept
	pending   uint8      // those of them whose responses have not all been sent
	named     uint32     // XRC: the SRQ that the request names
	recv      *receive   // the receive that the message uses
	off       uint64     // bytes of the send received so far
	effects   *effects   // nil: there has been none
	heldUntil clock.Time // when the ACK that it holds is to be sent
	write     write
	reorder   reorder
	results   results
	inbox     inbox

	shared   *SharedQueue // XRC: the one that the QP uses
	original uint64       // local path: original value of an atomic's operand
}

// incoming handles a request packet of an RC queue pair (IBA 9.7.4). rest is what follows the BTH, data
// the payload.
func (q *QP) incoming(op ib.Opcode, bth ib.BTH, rest, data []byte) {
	s := q.resp
	psn := bth.PSN()
	switch {
	case psn != s.psn:
		q.outOfTurn(op, bth, rest, data)
	case s.reorder.count == 0:
		q.inTurn(op, bth, rest, data)
	default:
		q.compareEarly(psn, op, bth, rest, data)
		s.reorder.exact = q.inTurn(op, bth, rest, data)
		q.dropEarly(psn, s.psn)
	}
}

// inTurn handles the request packet with the expected PSN. It reports whether the packet was carried out.
func (q *QP) inTurn(op ib.Opcode, bth ib.BTH, rest, data []byte) bool {
	s := q.resp
	if q.copying >= maxCopies {
		return false
	}
	psn, msn := s.psn, s.msn
	if !q.execute(op, bth, rest, data) {
		return false
	}
	s.nakSent = false
	if op != ib.RCReadRequest {
		s.psn = s.psn.Next()
	}
	q.settleEffect(psn, msn, bth.AckReq(), op.Ends())
	switch {
	case !q.settled():
	case bth.AckReq() || s.nak:
		s.ack = true
		q.activate()
	case op.Ends() && q.reliable():
		q.holdACK()
	}
	return true
}

// outOfTurn handles a request whose PSN is not the expected one.
func (q *QP) outOfTurn(op ib.Opcode, bth ib.BTH, rest, data []byte) {
	s := q.resp
	psn := bth.PSN()
	if psn.After(s.psn) {
		q.early(op, bth, rest, data)
		return
	}
	s.reorder.exact = psn.Next() == s.psn
	q.eng.counters.ResponderDuplicateRequests++
	switch {
	case op == ib.RCReadRequest:
		q.repeatRead(psn, ib.RETH(rest))
	case op.IsAtomic():
		q.repeatDone(psn, kindAtomic)
	case op.IsPlaced():
		q.repeatDone(psn, kindPlaced)
	case q.copyingFrom(psn):
		// What an ACK may acknowledge has not moved: to repeat it would
		// make the requester repeat the packet again, at once.
		s.effects.answerLast()
	default:
		s.ack = true
		q.activate()
	}
}

// early handles a request ahead of the expected one: packets before it are missing, or kept.
func (q *QP) early(op ib.Opcode, bth ib.BTH, rest, data []byte) {
	s := q.resp
	q.expireEarly()
	vouches := q.vouches(op, bth, rest, data)
	s.reorder.exact = false
	if vouches {
		q.replay(bth.PSN())
		if q.state != command.Err {
			q.incoming(op, bth, rest, data)
		}
		return
	}
	q.keepEarly(op, bth, rest, data)
	q.eng.counters.ResponderOutOfOrder++
	switch {
	case !s.nakSent: // one NAK for the gap (IBA 9.7.5.2.4)
		s.nakSent = true
		q.owe(ib.NAKSequence)
	case !q.settled():
		// An ACK would tell that packets are missing which wait for copies.
		s.effects.answerLast()
	case bth.AckReq() && s.reorder.count > 0:
		// The NAK, or the packet that it asked for, may be lost again. There
		// is only one NAK for a gap, but the last ACK may be repeated.
		s.ack = true
		q.activate()
	}
}

// owe schedules a NAK to be sent after the responses before it.
func (q *QP) owe(syndrome ib.Syndrome) {
	q.resp.nak, q.resp.syndrome = true, syndrome
	q.activate()
}

// execute carries out the request packet with the expected PSN. It returns false if it did not: the packet
// was refused, or must be retransmitted.
func (q *QP) execute(op ib.Opcode, bth ib.BTH, rest, data []byte) bool {
	s := q.resp
	if q.typ == command.XRCTarget && !q.choose(s.named) {
		return false
	}
	switch s.msg {
	case msgNone:
		if !op.Starts() {
			return q.refuse(ib.NAKInvalidRequest)
		}
	case msgSend:
		if op.Starts() || !op.IsSend() {
			return q.refuse(ib.NAKInvalidRequest)
		}
	case msgWrite:
		if op.Starts() || !op.IsWrite() {
			return q.refuse(ib.NAKInvalidRequest)
		}
	}
	if !q.lengthFits(op, len(data)) {
		return q.refuse(ib.NAKInvalidRequest)
	}
	switch {
	case op.IsSend():
		return q.takeSend(op, bth, rest, data)
	case op.IsWrite():
		return q.takeWrite(op, bth, rest, data)
	case op == ib.RCReadRequest:
		return q.takeRead(ib.RETH(rest))
	case op == ib.RCFlush:
		return q.takeFlush(ib.FETH(rest), ib.RETH(rest[ib.FETHLen:]))
	case op == ib.RCAtomicWrite:
		return q.takeAtomicWrite(ib.RETH(rest), data)
	}
	return q.takeAtomic(op, ib.AtomicETH(rest))
}

// lengthFits checks the rule of IBA 9.7.4.1.6 that every packet but the last is full.
func (q *QP) lengthFits(op ib.Opcode, n int) bool {
	switch {
	case !op.HasPayload():
		return true
	case op.IsOnly():
		return n <= q.mtu
	case op.IsLast():
		return n > 0 && n <= q.mtu
	}
	return n == q.mtu
}

// takeSend places a packet of a send.
func (q *QP) takeSend(op ib.Opcode, bth ib.BTH, rest, data []byte) bool {
	s := q.resp
	switch {
	case !op.Starts():
	case q.tagsOf() == nil:
		if !q.beginReceive() {
			return false
		}
	default:
		var step tagStep
		if data, step = q.beginTagged(op, data, bth.Solicited()); step != tagGoes {
			return step == tagDone
		}
	}
	w := s.recv
	if s.off+uint64(len(data)) > w.mem.length {
		q.eng.counters.ResponderLengthErrors++
		q.endReceive(ring.LocalLength)
		return q.refuse(ib.NAKInvalidRequest)
	}
	if err := q.placeIn(&w.mem, s.off, data, op.Ends()); err != nil {
		q.eng.counters.ResponderProtectionErrors++
		q.endReceive(ring.LocalProtection)
		return q.refuse(ib.NAKRemoteOperational)
	}
	s.off += uint64(len(data))
	s.msg = msgSend
	if !op.Ends() {
		return true
	}
	c := ring.CQE{Op: ring.CQRecv, ByteLen: uint32(s.off)}
	switch {
	case op.HasImm():
		c.Imm, c.Flags = ib.ImmDt(rest).Value(), ring.HasImm
	case op.HasIETH():
		c.Imm, c.Flags = ib.IETH(rest).RKey(), ring.Invalidated
		if err := q.eng.mem.Invalidate(q.pd, q.num, c.Imm); err != nil {
			q.endReceive(ring.LocalAccess)
			return q.refuse(ib.NAKRemoteAccess)
		}
	}
	q.messageDone(&c, bth.Solicited())
	return true
}

// beginReceive takes a receive for a message. It returns false if there is none, and the sender is told to
// retry, or if the receive cannot be used.
func (q *QP) beginReceive() bool {
	if q.resp.recv != nil {
		q.resp.off = 0
		return true // left by a message that the local path could not finish
	}
	w, bad, err := q.takeReceive()
	if err != nil {
		q.refuse(ib.NAKRemoteOperational)
		return false
	}
	if w == nil {
		q.notReady()
		return false
	}
	q.resp.recv, q.resp.off = w, 0
	if bad {
		q.eng.counters.ResponderProtectionErrors++
		q.endReceive(ring.LocalProtection)
		q.refuse(ib.NAKRemoteOperational)
		return false
	}
	return true
}

// notReady schedules an RNR NAK. Until the packet is retransmitted, what follows it is dropped silently.
func (q *QP) notReady() {
	q.eng.counters.ResponderRNRNAK++
	q.resp.nakSent = true
	q.owe(ib.RNR(q.attr.MinRNRTimer))
}

// takeWrite places a packet of an RDMA write.
func (q *QP) takeWrite(op ib.Opcode, bth ib.BTH, rest, data []byte) bool {
	s := q.resp
	n := uint64(len(data))
	if op.Starts() {
		h := ib.RETH(rest)
		if h.DMALen() > MaxMessage || memory.Access(q.attr.Access)&memory.RemoteWrite == 0 {
			return q.refuse(ib.NAKInvalidRequest)
		}
		s.write = write{va: h.VA(), rkey: h.RKey(), left: uint64(h.DMALen()), length: h.DMALen()}
	}
	if n > s.write.left || (n == s.write.left) != op.Ends() {
		return q.refuse(ib.NAKInvalidRequest)
	}
	span, err := q.writeSpan()
	if err != nil {
		return q.refuse(ib.NAKRemoteAccess)
	}
	if op.HasImm() && s.recv == nil && !q.beginReceive() {
		return false
	}
	if err := q.placeAt(span, data, endingOf(op, bth.AckReq())); err != nil {
		return q.refuse(ib.NAKRemoteOperational)
	}
	q.wrote(op, bth, rest, n)
	return true
}

// writeSpan checks the remaining range of a write: at the first packet that is the whole range, before its
// first byte is placed (IBA 9.7.4.1.5), and at each later one whether the region or window still exists.
func (q *QP) writeSpan() (memory.Span, error) {
	w := &q.resp.write
	return q.eng.mem.Remote(q.pd, q.num, w.rkey, w.va, w.left, memory.RemoteWrite)
}

// wrote advances after n bytes of a write were placed.
func (q *QP) wrote(op ib.Opcode, bth ib.BTH, rest []byte, n uint64) {
	s := q.resp
	s.write.va += n
	s.write.left -= n
	s.msg = msgWrite
	switch {
	case !op.Ends():
	case op.HasImm():
		if op.HasRETH() {
			rest = rest[ib.RETHLen:]
		}
		q.messageDone(&ring.CQE{Op: ring.CQRecvWrite, ByteLen: s.write.length, Imm: ib.ImmDt(rest).Value(), Flags: ring.HasImm},
			bth.Solicited())
	default:
		s.msg = msgNone
		s.msn = (s.msn + 1) & ib.PSNMask
	}
}

// messageDone completes the receive of a message.
func (q *QP) messageDone(c *ring.CQE, solicited bool) {
	s := q.resp
	s.msg = msgNone
	s.msn = (s.msn + 1) & ib.PSNMask
	if solicited {
		c.Flags |= ring.IsSolicited
	}
	q.finishReceive(c)
}

// finishReceive writes the completion of the receive in use.
func (q *QP) finishReceive(c *ring.CQE) {
	e, w := q.eng, q.resp.recv
	q.resp.recv = nil
	c.ID, c.Context, c.QPN = w.wr.ID, q.context, q.num
	if t := q.tagsOf(); t != nil {
		t.stamp(c)
	}
	c.Flags |= ring.ReceiveSide
	c.PKeyIndex = uint16(q.attr.PKeyIndex)
	if q.typ != command.UD {
		c.SL = q.attr.Route.SL
	}
	c.Timestamp = uint64(e.now)
	e.receives.put(w)
	if c.Status != ring.Success {
		e.counters.ResponderCQEErrors++
	}
	q.deliver(Completion{CQ: q.recvCQ, CQE: *c})
}

// endReceive completes the receive in use with an error.
func (q *QP) endReceive(status ring.Status) {
	if q.resp.recv != nil {
		q.finishReceive(&ring.CQE{Status: status, Op: ring.CQRecv})
	}
}

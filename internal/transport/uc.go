package transport

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// ucBits turns an opcode of the reliable connection service into its counterpart of the unreliable
// connection service (IBA 9.2.1).
const ucBits = ib.Opcode(ib.ServiceUC) << 5

// departed records that packets without acknowledgement were handed out. Their requests complete at the
// next Transmit, when the driver has sent them: until then the packets point into the client's memory.
func (q *QP) departed() {
	if !q.unsent {
		q.unsent = true
		q.eng.unsent = append(q.eng.unsent, q)
	}
}

// completeSent completes the requests whose packets have been sent.
func (e *Engine) completeSent() {
	if len(e.inPlace.runs) > 0 {
		e.completeInPlace()
	}
	for i, q := range e.unsent {
		e.unsent[i] = nil
		if !q.unsent {
			continue
		}
		q.unsent = false
		if q.state == command.Err || q.state == command.SQE {
			continue
		}
		q.req.una = q.req.snd
		q.retire()
		if q.req.outstanding < maxOutstanding && q.state == command.RTS {
			q.activate()
		}
	}
	e.unsent = e.unsent[:0]
}

// incomingUC handles a packet of an unreliable connection (IBA 9.8.3): a message with a missing packet is
// dropped silently, and its receive is used for the next one.
func (q *QP) incomingUC(op ib.Opcode, bth ib.BTH, rest, data []byte) {
	s := q.resp
	psn := bth.PSN()
	if psn != s.psn {
		if s.msg != msgNone {
			q.dropUC()
		}
		if !op.Starts() {
			s.broken = true
		}
	}
	s.psn = psn.Next()
	op &^= ucBits
	switch {
	case op.Starts():
		if s.msg != msgNone {
			q.dropUC()
		}
		s.broken = false
	case s.broken:
		return
	case s.msg == msgNone, (s.msg == msgSend) != op.IsSend():
		q.dropUC()
		return
	}
	if q.copying >= maxCopies || !q.lengthFits(op, len(data)) || !q.executeUC(op, bth, rest, data) {
		q.dropUC()
	}
	q.settleEffect(0, 0, false, false)
}

// dropUC abandons the message in progress and keeps its receive.
func (q *QP) dropUC() {
	q.resp.msg = msgNone
	q.resp.broken = true
	q.eng.counters.BrokenUC++
}

func (q *QP) executeUC(op ib.Opcode, bth ib.BTH, rest, data []byte) bool {
	if op.IsSend() {
		return q.sendArrived(op, bth, rest, data)
	}
	return q.writeArrived(op, bth, rest, data)
}

// ensureReceive ensures that the message has a receive.
func (q *QP) ensureReceive() bool {
	if q.resp.recv != nil {
		return true
	}
	w, bad, err := q.takeReceive()
	switch {
	case err != nil:
		q.fatal(command.EventQPFatal)
		return false
	case w == nil:
		q.eng.counters.DiscardedUC++
		return false
	case bad:
		q.resp.recv = w
		q.eng.counters.ResponderProtectionErrors++
		q.endReceive(ring.LocalProtection)
		q.fatal(command.EventQPAccessError)
		return false
	}
	q.resp.recv = w
	return true
}

func (q *QP) sendArrived(op ib.Opcode, bth ib.BTH, rest, data []byte) bool {
	s := q.resp
	if op.Starts() {
		s.off = 0
		if !q.ensureReceive() {
			return false
		}
	}
	w := s.recv
	if w == nil {
		return false
	}
	if s.off+uint64(len(data)) > w.mem.length {
		q.eng.counters.ResponderLengthErrors++
		return false
	}
	if err := q.placeIn(&w.mem, s.off, data, op.Ends()); err != nil {
		q.eng.counters.ResponderProtectionErrors++
		q.endReceive(ring.LocalProtection)
		q.fatal(command.EventQPAccessError)
		return false
	}
	s.off += uint64(len(data))
	s.msg = msgSend
	if op.Ends() {
		c := ring.CQE{Op: ring.CQRecv, ByteLen: uint32(s.off)}
		if op.HasImm() {
			c.Imm, c.Flags = ib.ImmDt(rest).Value(), ring.HasImm
		}
		q.messageDone(&c, bth.Solicited())
	}
	return true
}

func (q *QP) writeArrived(op ib.Opcode, bth ib.BTH, rest, data []byte) bool {
	s := q.resp
	n := uint64(len(data))
	if op.Starts() {
		h := ib.RETH(rest)
		if h.DMALen() > MaxMessage || memory.Access(q.attr.Access)&memory.RemoteWrite == 0 {
			return false
		}
		s.write = write{va: h.VA(), rkey: h.RKey(), left: uint64(h.DMALen()), length: h.DMALen()}
	}
	if n > s.write.left || (n == s.write.left) != op.Ends() || op.HasImm() && !q.ensureReceive() {
		return false
	}
	span, err := q.writeSpan()
	if err != nil {
		q.eng.counters.ResponderRemoteAccessErrors++
		return false
	}
	if err := q.placeAt(span, data, endingOf(op, true)); err != nil {
		q.eng.counters.ResponderRemoteOperationErrs++
		return false
	}
	q.wrote(op, bth, rest, n)
	return true
}

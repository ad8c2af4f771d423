package transport

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/trace"
	"github.com/softvpi/softvpi/wire/ib"
)

// response handles a packet from the responder (IBA 9.7.5.1). rest is what follows the BTH, pad included;
// data is the payload.
func (q *QP) response(now clock.Time, op ib.Opcode, psn ib.PSN, rest, data []byte) {
	s := q.req
	c := &q.eng.counters
	if q.state != command.RTS && q.state != command.SQD {
		c.WrongState++
		return
	}
	syndrome, msn := ib.ACK(ib.CreditInvalid), uint32(0)
	if op.HasAETH() {
		syndrome, msn = ib.AETH(rest).Syndrome(), ib.AETH(rest).MSN()
		rest = rest[ib.AETHLen:]
	}
	if d := psn.Diff(s.una); d < 0 || psn.Diff(s.max) >= 0 {
		if d != -1 || op != ib.RCAcknowledge || !syndrome.IsACK() || !q.unsolicited(syndrome, msn) && !q.repeated(now) {
			c.GhostACKs++
		}
		return
	}
	switch {
	case op.IsReadResponse():
		q.readResponse(now, op, psn, data)
	case op == ib.RCAtomicAcknowledge:
		q.atomicResponse(now, psn, binary.BigEndian.Uint64(rest))
	case syndrome.IsACK():
		c.ACKsReceived++
		if !q.ackTo(now, psn) {
			return
		}
	default:
		q.negative(now, psn, syndrome)
		return
	}
	if op.HasAETH() && syndrome.IsACK() {
		q.grant(syndrome, msn)
	}
	if q.wantsTurn() {
		q.activate()
	}
}

// wantsTurn reports whether an acknowledgement may allow q to continue sending.
func (q *QP) wantsTurn() bool { return (q.state == command.RTS || q.req.cur != nil) && !q.pacing() }

// ackTo treats everything up to and including psn as acknowledged. The exception is a read or atomic whose
// response has not arrived: it must have been lost, which is an implied NAK, and ackTo returns false (IBA
// 9.7.5.1.1).
func (q *QP) ackTo(now clock.Time, psn ib.PSN) bool {
	s := q.req
	to, implied := psn.Next(), false
	if s.reads > 0 {
		for r := s.head; r != nil && r.begun && !r.first.After(psn); r = r.next {
			if r.answered() && s.una.Before(r.end()) {
				to, implied = r.first, true
				if s.una.After(to) {
					to = s.una
				}
				break
			}
		}
	}
	q.progress(now, to)
	if implied {
		q.impliedNAK(now)
	}
	return !implied && q.state != command.Err
}

// progress advances una to to, which lies within what was sent, and completes the requests that are done
// by then.
func (q *QP) progress(now clock.Time, to ib.PSN) {
	s := q.req
	if !to.After(s.una) {
		return
	}
	first := s.una
	s.una = to
	q.probeTaken()
	s.retries, s.rnrRetries, s.timeouts = q.attr.Retry, q.attr.RNRRetry, 0
	s.nakSeen = false
	if s.timing && to.After(s.timedPSN) {
		q.win.measured(s.timedAt, now)
		s.timing = false
	}
	if s.probes = 0; s.probing {
		q.probed(now, first)
	}
	s.vacate()
	q.acknowledgedSome()
	if s.snd.Before(s.una) {
		// A response to packets that were sent before going back.
		q.seek(s.una)
	}
	q.recount(true)
	if !s.rnrWait {
		s.expires = 0
		q.eng.timers.arm(q, clock.Never)
		if q.flight() > 0 {
			q.armAck(now)
		}
	}
	q.retire()
}

// awaited returns the oldest request waiting for a response with data, and the PSN of the next packet
// expected for it.
func (q *QP) awaited() (*request, ib.PSN) {
	s := q.req
	if s.reads == 0 {
		return nil, 0
	}
	for r := s.head; r != nil && r.begun; r = r.next {
		if r.answered() && s.una.Before(r.end()) {
			if s.una.After(r.first) {
				return r, s.una
			}
			return r, r.first
		}
	}
	return nil, 0
}

// expect finds the request to which a response with data belongs. The response acknowledges everything
// before it. atomic says which of the two kinds of response it is. nil: the packet is a ghost, or an earlier one was lost.
func (q *QP) expect(now clock.Time, psn ib.PSN, atomic bool) *request {
	r, want := q.awaited()
	if r == nil || psn.Before(want) {
		q.eng.counters.GhostACKs++
		return nil
	}
	if psn != want {
		q.progress(now, want)
		q.impliedNAK(now)
		return nil
	}
	if (r.kind == kindAtomic) != atomic {
		q.badResponse(now, r)
		return nil
	}
	q.progress(now, r.first)
	return r
}

func (q *QP) readResponse(now clock.Time, op ib.Opcode, psn ib.PSN, data []byte) {
	r := q.expect(now, psn, false)
	if r == nil {
		return
	}
	if r.kind == kindPlaced {
		q.placedResponse(now, r, len(data))
		return
	}
	off := uint64(psn.Diff(r.first)) * uint64(q.mtu)
	want := min(uint64(q.mtu), r.length-off)
	final := off+want == r.length
	if q.copying >= maxCopies {
		return
	}
	if uint64(len(data)) != want || final && !op.Ends() {
		q.badResponse(now, r)
		return
	}
	if err := q.place(&r.wr.mem, off, data, final, r); err != nil {
		q.eng.counters.RequesterProtectionErrors++
		q.failNow(now, r, ring.LocalProtection)
		return
	}
	q.progress(now, psn.Next())
}

// placedResponse handles the response to an atomic write or a flush, n bytes of payload, which must be none.
func (q *QP) placedResponse(now clock.Time, r *request, n int) {
	if n > 0 {
		q.badResponse(now, r)
		return
	}
	q.progress(now, r.end())
}

func (q *QP) atomicResponse(now clock.Time, psn ib.PSN, original uint64) {
	r := q.expect(now, psn, true)
	if r == nil {
		return
	}
	binary.NativeEndian.PutUint64(q.eng.word[:], original) // in the byte order of the responder's memory
	if err := q.place(&r.wr.mem, 0, q.eng.word[:], true, r); err != nil {
		q.eng.counters.RequesterProtectionErrors++
		q.failNow(now, r, ring.LocalProtection)
		return
	}
	q.progress(now, psn.Next())
}

// badResponse fails a request whose response makes no sense (IBA 9.9.2.4.1).
func (q *QP) badResponse(now clock.Time, r *request) { q.failNow(now, r, ring.BadResponse) }

// failNow fails r; the response that caused it acknowledges the requests before it.
func (q *QP) failNow(now clock.Time, r *request, status ring.Status) {
	q.progress(now, r.first)
	if q.state == command.Err {
		return
	}
	r.status = status
	q.req.stopped = true
	q.retire()
}

// negative handles a NAK (IBA 9.7.5.2), which acknowledges the packets before it.
func (q *QP) negative(now clock.Time, psn ib.PSN, syndrome ib.Syndrome) {
	s := q.req
	c := &q.eng.counters
	if psn.After(s.una) && !q.ackTo(now, psn.Prev()) {
		return
	}
	if s.una != psn {
		return
	}
	q.eng.trace.Note(trace.NAKReceived, q.num, uint32(psn), uint32(syndrome))
	switch {
	case syndrome.IsRNR():
		c.RequesterRNRNAK++
		q.receiverNotReady(now, syndrome.Value())
	case syndrome == ib.NAKSequence:
		c.RequesterOutOfOrderNAK++
		if s.nakSeen {
			return // the same gap again: already gone back for it
		}
		q.missing(now)
	case syndrome == ib.NAKInvalidRequest:
		c.RequesterInvalidRequestErrors++
		q.refused(now, psn, ring.RemoteInvalidRequest)
	case syndrome == ib.NAKRemoteAccess:
		c.RequesterRemoteAccessErrors++
		q.refused(now, psn, ring.RemoteAccess)
	case syndrome == ib.NAKRemoteOperational:
		c.RequesterRemoteOperationErrs++
		q.refused(now, psn, ring.RemoteOperation)
	}
	// Reserved syndromes are ignored (IBA 9.7.5.2.1).
}

// refused fails the request that psn belongs to.
func (q *QP) refused(now clock.Time, psn ib.PSN, status ring.Status) {
	r := q.find(psn)
	if r == nil {
		return
	}
	// Local requests before r are complete by now, so r is the head.
	q.failNow(now, r, status)
}

// find returns the request in progress that psn belongs to.
func (q *QP) find(psn ib.PSN) *request {
	for r := q.req.head; r != nil && r.begun; r = r.next {
		if r.packets > 0 && psn.Before(r.end()) {
			return r
		}
	}
	return nil
}

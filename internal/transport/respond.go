package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/trace"
	"github.com/softvpi/softvpi/wire/ib"
)

// owes reports whether the responder has something to send.
func (s *responder) owes() bool { return s.pending > 0 || s.ack || s.nak }

// respond emits what the responder has to send, in PSN order: responses to reads and atomics, then one ACK
// or NAK for everything received. In Error only a NAK that ended the QP is still sent.
func (q *QP) respond(now clock.Time, out []frame.Out) (n int, more bool) {
	s := q.resp
	if q.state < command.RTR || q.state == command.Err && !s.nak {
		return 0, false
	}
	from, bytes := q.turnBytes(now)
	if s.pending > 0 && q.waitsUntil(now, from) {
		return 0, false // the acknowledgement, too, has its turn behind the responses
	}
	limit := min(len(out), q.eng.cfg.MaxBurst)
	for s.pending > 0 && n < limit && bytes > 0 {
		r := s.results.pending()
		if r.kind == kindAtomic {
			if !q.sendAtomicAnswer(r, &out[n]) {
				return n, false
			}
			n++
			continue
		}
		k := q.sendReadAnswer(r, out[n:limit], &bytes)
		if k == 0 {
			return n, false // waiting for a copy, or scratch is full
		}
		n += k
		size, answered := q.answerSize(r), q.eng.cfg.MaxBurstBytes-bytes
		if size <= shortAnswer && answered >= answersAhead(size*int(s.depth)) && s.pending > 0 {
			q.eng.early = true
			return n, true
		}
	}
	if s.pending > 0 || (s.ack || s.nak) && n == len(out) {
		return n, true
	}
	return n + q.acknowledge(out[n:]), false
}

const (
	// shortAnswer is how many bytes the answers to short reads have, of which many are sent in a turn.
	shortAnswer = 8 << 10
	// answersLeast and answersMost are the least and the most answer bytes to short reads after which Transmit returns. The most fill a
	// burst of the link, with their headers: the system takes about as long for half of one as for the whole.
	answersLeast, answersMost = 32 << 10, 60 << 10
)

// answersAhead returns the number of answer bytes to short reads after which Transmit returns, if so many may be outstanding: half of
// them, because the requester should handle some while others are being made.
func answersAhead(outstanding int) int { return min(max(outstanding/2, answersLeast), answersMost) }

// answerSize returns how many bytes the answers to r have, in whole packets.
func (q *QP) answerSize(r *result) int { return int(r.end.Diff(r.first)) * q.mtu }

// acknowledge emits the pending ACK or NAK.
func (q *QP) acknowledge(out []frame.Out) int {
	s := q.resp
	switch {
	case s.nak && q.settled():
		q.sendACK(&out[0], s.psn, s.syndrome, s.msn)
		q.eng.trace.Note(trace.NAKSent, q.num, uint32(s.psn), uint32(s.syndrome))
		if s.syndrome == ib.NAKSequence {
			q.eng.counters.SequenceNAKsSent++
			s.nakSent = true
		}
		s.nak = false
		q.told()
		if s.syndrome.IsRNR() {
			s.dry = q.countsCredits()
			q.announceReceives()
		}
		return 1
	case s.ack && !s.nak:
		psn, msn := q.acknowledged()
		q.sendACK(&out[0], psn, q.creditSyndrome(), msn)
		q.eng.counters.ACKsSent++
		q.told()
		return 1
	}
	return 0
}

func (q *QP) sendACK(o *frame.Out, psn ib.PSN, syndrome ib.Syndrome, msn uint32) {
	q.start(o, ib.RCAcknowledge, false, false, nil, psn)
	ib.AETH(o.Head[o.HeadEnd:]).Encode(syndrome, msn)
	o.HeadEnd += ib.AETHLen
}

func (q *QP) sendAtomicAnswer(r *result, o *frame.Out) bool {
	if r.waiting || !q.settled() {
		return false
	}
	q.start(o, ib.RCAtomicAcknowledge, false, false, nil, r.first)
	ib.AETH(o.Head[o.HeadEnd:]).Encode(q.creditSyndrome(), r.msn)
	ib.AtomicAckETH(o.Head[o.HeadEnd+ib.AETHLen:]).SetOriginal(r.value)
	o.HeadEnd += ib.AETHLen + ib.AtomicAckETHLen
	q.answered(r)
	return true
}

// answered records that the last response of r was sent. It acknowledges what came before it, so no ACK up
// to there is needed.
func (q *QP) answered(r *result) {
	s := q.resp
	r.pending, r.told = false, true
	s.pending--
	if r.end == s.psn && s.pending == 0 && !s.nak {
		q.told()
	}
}

// sendReadAnswer emits read responses of r.
//
// Nothing limits the number of responses to long reads in flight, except that a requester asks for no more
// than readChunk at a time, as the one here does.
func (q *QP) sendReadAnswer(r *result, out []frame.Out, bytes *int) (n int) {
	if !q.settled() {
		return 0
	}
	n = q.answerRead(r, out, bytes)
	if r.end.Diff(r.first) <= readChunk {
		windowed(out[:n])
	}
	return n
}

// answerRead makes the packets of sendReadAnswer.
func (q *QP) answerRead(r *result, out []frame.Out, bytes *int) (n int) {
	mtu := uint64(q.mtu)
	for n < len(out) && *bytes > 0 {
		if k := q.answerMiddles(r, out[n:], *bytes); k > 0 {
			n += k
			*bytes -= k * q.mtu
		}
		if n == len(out) || *bytes <= 0 {
			break
		}
		size := min(mtu, r.left)
		last := size == r.left
		payload, err := q.fetchedAt(&r.fetch, r.span, size, r.left)
		if err != nil {
			q.answerFailed(r)
			return n
		}
		if payload == nil && size > 0 {
			return n
		}
		op := ib.RCReadResponseMiddle
		switch {
		case r.fresh && last:
			op = ib.RCReadResponseOnly
		case r.fresh:
			op = ib.RCReadResponseFirst
		case last:
			op = ib.RCReadResponseLast
		}
		o := &out[n]
		q.start(o, op, false, false, payload, r.next)
		if op.HasAETH() {
			ib.AETH(o.Head[o.HeadEnd:]).Encode(q.creditSyndrome(), r.msn)
			o.HeadEnd += ib.AETHLen
		}
		n++
		*bytes -= int(size)
		r.fresh = false
		r.next = r.next.Next()
		r.span.Addr += size
		if r.left -= size; last {
			q.answered(r)
			break
		}
	}
	return n
}

// answerMiddles emits middle packets of the response if it comes from mapped memory.
func (q *QP) answerMiddles(r *result, out []frame.Out, bytes int) int {
	n := min(len(out), (bytes-1)/q.mtu+1, int(q.fullPackets(r.left))/q.mtu)
	if r.fresh || n < 2 || r.span.Region.Dead() {
		return 0
	}
	n = q.middles(out[:n], ib.RCReadResponseMiddle, r.span.Region.Slice(r.span.Addr, uint64(n)*uint64(q.mtu)), r.next)
	r.next = r.next.Add(uint32(n))
	r.span.Addr += uint64(n) * uint64(q.mtu)
	r.left -= uint64(n) * uint64(q.mtu)
	return n
}

// answerFailed ends the QP because the source memory of a read response is gone (IBA 9.7.5.2.7): a NAK
// takes the place of the response.
func (q *QP) answerFailed(r *result) {
	s := q.resp
	if s.nak && q.state == command.Err && !r.next.Before(s.psn) {
		return // behind the response that ended the QP
	}
	s.psn = r.next
	for i := range s.results.n {
		s.results.at(i).pending = false
	}
	s.pending = 0
	s.ack = false
	q.refuse(ib.NAKRemoteOperational)
}

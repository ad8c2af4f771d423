package transport

import (
	"errors"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// effect is what a responder may make visible of a packet only once its copies, and those of the packets
// before it, have finished.
type effect struct {
	copies     int
	answer     bool   // the packet asked for an ACK
	ends       bool   // it is the last one of its message
	psn        ib.PSN // expected PSN after the packet
	msn        uint32
	completion Completion
	completes  bool
}

// effects are the packets with copies in progress, and those behind them.
type effects struct {
	queue   queue[effect]
	first   uint64  // serial number of the oldest
	started int     // copies of the packet in progress
	held    *effect // its completion; allocated on first use: few queue pairs ever need one
	psn     ib.PSN  // before the oldest: what an ACK may acknowledge
	msn     uint32
}

// copies returns the effects of q, for use.
func (q *QP) copies() *effects {
	s := q.resp
	if s.effects == nil {
		s.effects = &effects{}
	}
	return s.effects
}

// none reports that nothing waits for copies. f may be nil.
func (f *effects) none() bool { return f == nil || f.queue.len() == 0 }

// startedNone reports that neither anything waits for copies, nor has the packet in progress started one. f may be nil.
func (f *effects) startedNone() bool { return f == nil || f.started == 0 && f.queue.len() == 0 }

// settled reports whether the responder has no copy in progress.
func (q *QP) settled() bool { return q.resp.effects.none() }

// copyingFrom reports whether the packet with this PSN, or one before it, waits for copies, so that it was carried out but
// must not be acknowledged yet.
func (q *QP) copyingFrom(psn ib.PSN) bool { return !q.settled() && !psn.Before(q.resp.effects.psn) }

// acknowledged returns the PSN and MSN that an ACK may carry. They precede the reads and atomics that came
// last, which are acknowledged by their own responses: a requester that only looks at the PSN would take
// an ACK of an atomic for its response.
func (q *QP) acknowledged() (ib.PSN, uint32) {
	s, f := q.resp, q.resp.effects
	psn, msn := s.psn, s.msn
	if !f.none() {
		psn, msn = f.psn, f.msn
	}
	for i := s.results.n - 1; i >= 0 && !s.results.at(i).end.Before(psn); i-- {
		if r := s.results.at(i); r.end == psn {
			psn, msn = r.first, (r.msn-1)&ib.PSNMask
		}
	}
	return psn.Prev(), msn
}

// deliver queues a completion of the receiving side, behind the copies in progress.
func (q *QP) deliver(c Completion) {
	f := q.resp.effects
	if f.startedNone() {
		*q.eng.completed() = c
		return
	}
	if f.held == nil {
		f.held = new(effect)
	}
	f.held.completion, f.held.completes = c, true
}

// settleEffect finishes a packet that was carried out; psn, msn describe the state before it.
func (q *QP) settleEffect(psn ib.PSN, msn uint32, answer, ends bool) {
	f := q.resp.effects
	if f.startedNone() {
		return
	}
	if f.queue.len() == 0 {
		f.psn, f.msn = psn, msn
	}
	v := f.queue.push()
	if *v = (effect{}); f.held != nil {
		*v, *f.held = *f.held, effect{}
	}
	v.copies, v.psn, v.msn, v.answer, v.ends = f.started, q.resp.psn, q.resp.msn, answer, ends
	f.started = 0
}

// effectCopied records the end of an effect's copy and releases the effects that are complete.
func (q *QP) effectCopied(serial uint64, err error) {
	f := q.resp.effects
	if f == nil {
		return
	}
	i := serial - f.first
	if serial < f.first || i >= uint64(f.queue.len()) {
		return
	}
	items := f.queue.items[f.queue.head:]
	items[i].copies--
	switch {
	case err == nil:
	case q.reliable() && q.state != command.Err:
		q.effectFailed(int(i))
		return
	case items[i].completes:
		items[i].completion.Status, items[i].completion.ByteLen = ring.LocalProtection, 0
	}
	for f.queue.len() > 0 && f.queue.items[f.queue.head].copies == 0 {
		var v [1]effect
		f.queue.take(v[:])
		f.first++
		f.psn, f.msn = v[0].psn, v[0].msn
		if v[0].completes {
			*q.eng.completed() = v[0].completion
		}
		switch {
		case v[0].answer:
			q.resp.ack = true
			q.activate()
		case v[0].ends && q.reliable():
			q.holdACK()
		}
	}
}

// effectFailed ends the QP because a copy failed: it sends a NAK for that packet, so that for the
// requester neither it nor anything after it has happened (IBA 9.7.5.2.7).
func (q *QP) effectFailed(i int) {
	f := q.resp.effects
	v := &f.queue.items[f.queue.head+i]
	if v.completes {
		v.completion.Status = ring.LocalProtection
	}
	// Earlier packets that still wait for copies must not be
	// acknowledged either, so the NAK has the PSN of the oldest.
	q.resp.psn, q.resp.msn = f.psn, f.msn
	for k := range q.resp.results.n {
		if r := q.resp.results.at(k); r.pending && !r.first.Before(f.psn) {
			r.pending = false
			q.resp.pending--
		}
	}
	q.dropEffects(true)
	q.refuse(ib.NAKRemoteOperational)
}

// dropEffects completes what waits for copies as flushed, or with the error that it already has.
func (q *QP) dropEffects(deliver bool) {
	f := q.resp.effects
	if f == nil {
		return
	}
	f.held, f.started = nil, 0
	f.first += uint64(f.queue.len())
	for f.queue.len() > 0 {
		var v [1]effect
		f.queue.take(v[:])
		if !deliver || !v[0].completes {
			continue
		}
		c := &v[0].completion
		if c.Status == ring.Success {
			c.Status, c.ByteLen = ring.WRFlush, 0
		}
		*q.eng.completed() = *c
	}
}

// answerLast requests an ACK at the end of the copies in progress.
func (f *effects) answerLast() {
	if !f.none() {
		f.queue.items[len(f.queue.items)-1].answer = true
	}
}

// started counts copies that the packet in progress has started.
func (q *QP) started(n int) {
	if n > 0 {
		q.copies().started += n
	}
}

// effectOp returns the copyOp for the packet in progress.
func (q *QP) effectOp() copyOp {
	f := q.resp.effects
	if f == nil {
		return copyOp{kind: copyEffect}
	}
	return copyOp{kind: copyEffect, effect: f.first + uint64(f.queue.len())}
}

// placeIn places payload in a receive's memory.
func (q *QP) placeIn(b *buffers, off uint64, data []byte, last bool) error {
	n, err := q.gatherIn(b, off, data, last, q.effectOp())
	if q.started(n); n > 0 || err != nil {
		return err
	}
	err = b.write(off, data, last)
	if !errors.Is(err, memory.ErrBlock) {
		return err
	}
	n, err = q.deferWrite(b, off, data, last, q.effectOp())
	q.started(n)
	return err
}

// placeAt places payload of an RDMA write.
func (q *QP) placeAt(s memory.Span, data []byte, in ending) error {
	if len(data) > 0 && s.Region.Remote != nil && s.Region.Dead() {
		return memory.ErrGone
	}
	if len(data) > 0 && s.Region.Gathers() != nil {
		if n := q.gatherAt(s.Region, s.Addr, data, in, q.effectOp()); n > 0 {
			q.started(n)
			return nil
		}
	}
	var err error
	last := in != inMessage
	if last {
		err = s.Region.WriteLast(s.Addr, data)
	} else {
		err = s.Region.Write(s.Addr, data)
	}
	if !errors.Is(err, memory.ErrBlock) {
		return err
	}
	q.startWrite(s.Region, s.Addr, data, last, q.effectOp())
	q.started(1)
	return nil
}

// atomic carries out an atomic on checked memory, or starts it there.
func (q *QP) atomic(r *result, s memory.Span, op ib.Opcode, h ib.AtomicETH) (err error) {
	t := memory.Transfer{Kind: memory.CopyFetchAdd, Addr: s.Region.OwnerAddr(s.Addr), Swap: h.SwapAdd()}
	if op == ib.RCCompareSwap {
		t.Kind, t.Compare = memory.CopyCompareSwap, h.Compare()
		r.value, err = s.Region.CompareSwap(s.Addr, t.Compare, t.Swap)
	} else {
		r.value, err = s.Region.FetchAdd(s.Addr, t.Swap)
	}
	if !errors.Is(err, memory.ErrBlock) {
		return err
	}
	r.waiting = true
	q.eng.start(q, s.Region, t, copyOp{kind: copyAtomic, psn: uint32(q.resp.psn)})
	return nil
}

// atomicCopied handles the result of an atomic.
func (q *QP) atomicCopied(psn uint32, done *CopyResult) {
	i := q.keptAt(ib.PSN(psn))
	if i < 0 || !q.resp.results.at(i).waiting {
		return
	}
	r := q.resp.results.at(i)
	r.waiting = false
	if r.value = done.Old; done.Err != nil {
		r.next = r.first
		q.answerFailed(r)
	}
}

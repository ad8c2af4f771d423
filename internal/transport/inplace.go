package transport

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
)

// Most frames of raw packet queue pairs are in memory at hand: in one element of a mapped region, or in the request itself. Such a
// frame needs no request: all that its completion takes is its number. The frames of a queue pair that were handed out so complete
// before its requests, and none is handed out so while it has requests.

// inPlace are the frames that were handed out and are not complete, in the order in which they were handed out.
type inPlace struct {
	runs []inPlaceRun
	sent []inPlaceSend
}

// inPlaceRun are consecutive frames of one queue pair.
type inPlaceRun struct {
	q *QP // nil: nobody is told any more
	n int
}

type inPlaceSend struct {
	id     uint64
	length uint32
	told   bool
}

// sendInPlace makes frames of requests for as long as their bytes are at hand, until they have so many bytes. It leaves the first whose
// are not as q.req.head.
func (q *QP) sendInPlace(out []frame.Out, bytes *int) (n int) {
	e := q.eng
	if q.holdsBack() || q.req.stopped {
		return 0
	}
	wr := &e.coming.wr
	corrupt, left := false, false
	for n < len(out) && *bytes > 0 {
		ok, err := q.sq.Next(wr)
		if corrupt = err != nil; corrupt || !ok {
			break
		}
		b := q.atHand(wr)
		if p := q.priority; b != nil {
			if q.priority = e.framePriority(b); q.priority != p {
				b = nil // it waits for the turn of that priority
			}
		}
		if b != nil && wr.Flags&ring.Checksums != 0 {
			b = e.summed(b)
		}
		if left = b == nil; left {
			break
		}
		q.rawFrame(&out[n], b)
		*bytes -= len(b) + fcsLen
		e.inPlace.sent = append(e.inPlace.sent, inPlaceSend{wr.ID, uint32(len(b)), q.signalAll || wr.Flags&ring.Signaled != 0})
		n++
	}
	if n > 0 {
		q.req.inPlace += int32(n)
		e.inPlace.runs = append(e.inPlace.runs, inPlaceRun{q, n})
		e.bell.Ring()
	}
	switch { // once what was handed out counts
	case corrupt:
		q.fatal(command.EventQPFatal)
	case left:
		q.accept()
	}
	return n
}

// atHand returns the bytes of a frame; nil if they are not at hand, or there is something wrong with the request.
func (q *QP) atHand(wr *SendWR) (b []byte) {
	switch {
	case wr.Op != ring.OpSend:
		return nil
	case wr.Flags&ring.Inline != 0:
		if b = wr.Inline; len(b) > int(q.maxInline) {
			return nil
		}
	case wr.NumSGE == 1:
		s := &wr.mem.sges[0]
		if r, err := q.eng.mem.Local(q.pd, s.LKey, s.Addr, uint64(s.Length), 0); err == nil && !r.Dead() {
			b = r.Slice(s.Addr, uint64(s.Length))
		}
	}
	if !q.eng.fits(uint64(len(b))) {
		return nil
	}
	return b
}

// completeInPlace completes the frames that were handed out, which the driver has sent by now.
func (e *Engine) completeInPlace() {
	l := &e.inPlace
	at := 0
	for i := range l.runs {
		run := &l.runs[i]
		if q := run.q; q != nil {
			run.q = nil
			q.completeInPlace(l.sent[at:at+run.n], ring.Success)
			if q.req.head != nil {
				q.retire()
			}
			q.checkDrained()
		}
		at += run.n
	}
	l.runs, l.sent = l.runs[:0], l.sent[:0]
}

// completeInPlace completes frames of q.
func (q *QP) completeInPlace(sent []inPlaceSend, status ring.Status) {
	for i := range sent {
		s := &sent[i]
		if !s.told && status == ring.Success {
			continue
		}
		c := q.eng.completed()
		c.CQ, c.ID, c.Context, c.QPN, c.Timestamp = q.sendCQ, s.id, q.context, q.num, uint64(q.eng.now)
		c.Op, c.Status = ring.CQSend, status
		if status == ring.Success {
			c.ByteLen = s.length
		} else {
			q.eng.counters.RequesterCQEErrors++
		}
	}
	q.req.inPlace -= int32(len(sent))
	q.sq.Release(len(sent))
}

// endInPlace ends the frames of q that are not complete: as flushed, or without a word.
func (q *QP) endInPlace(flushed bool) {
	if q.req.inPlace == 0 {
		return
	}
	l := &q.eng.inPlace
	at := 0
	for i := range l.runs {
		run := &l.runs[i]
		if run.q == q {
			if run.q = nil; flushed {
				q.completeInPlace(l.sent[at:at+run.n], ring.WRFlush)
			} else {
				q.req.inPlace -= int32(run.n)
				q.sq.Release(run.n)
			}
		}
		at += run.n
	}
}

// receiveInPlace copies a frame into a receive whose memory is at hand and completes it. It returns false if it cannot, and has
// done nothing then.
func (q *QP) receiveInPlace(w *receive, head, rest []byte, flags ring.CQFlags, tag, hash uint32) bool {
	n := len(head) + len(rest)
	if w.mem.at != 0 || w.wr.NumSGE != 1 || !q.settled() || w.mem.region(0).Remote != nil {
		return false
	}
	dst := w.mem.view(0, uint64(n))
	if dst == nil {
		return false
	}
	copy(dst[copy(dst, head):], rest)
	e := q.eng
	c := e.completed()
	c.CQ, c.ID, c.Context, c.QPN, c.Timestamp = q.recvCQ, w.wr.ID, q.context, q.num, uint64(e.now)
	c.Op, c.Flags, c.ByteLen = ring.CQRecv, flags|ring.ReceiveSide, uint32(n)
	c.Imm, c.SrcQP = tag, hash
	q.resp.recv = nil
	e.receives.put(w)
	return true
}

package transport

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/ring"
)

// A large send of a raw packet queue pair (IBV_WR_TSO) is the headers of a packet of TCP, which are in the request, and data in its
// elements. It leaves as frames with so much data each as the request says, whose headers differ as those of large-send offload do.

const (
	// MaxLargeSend is how many bytes of data a large send has at most, and mostSegments how many frames it becomes.
	MaxLargeSend = 256 << 10
	mostSegments = 4096
	// MaxLargeHeaders is how many bytes of headers it has at most.
	MaxLargeHeaders = command.MostHeaders
)

// checkLarge checks a large send, whose elements were looked up.
func (q *QP) checkLarge(r *request) ring.Status {
	head, size := len(r.wr.Inline), uint64(r.wr.Imm)
	var h [MaxLargeHeaders]byte
	switch {
	case size == 0, head > MaxLargeHeaders, r.length > MaxLargeSend, (r.length+size-1)/max(size, 1) > mostSegments,
		!q.eng.fits(uint64(head) + min(size, r.length)):
		q.eng.counters.RequesterLengthErrors++
		return ring.LocalLength
	case !offload.Segment(h[:copy(h[:], r.wr.Inline)], nil, 0, 0, true):
		q.eng.counters.RequesterQPOperationErrors++
		return ring.LocalQPOperation
	}
	return ring.Success
}

// segmentsOf returns how many frames a large send becomes.
func segmentsOf(r *request) uint32 {
	return uint32(max(1, (r.length+uint64(r.wr.Imm)-1)/uint64(r.wr.Imm)))
}

// segment makes the next frame of a large send. ok is false if its data is not at hand yet, or cannot be read, or there is no room.
func (q *QP) segment(r *request, o *frame.Out) (ok bool) {
	off := uint64(q.req.idx) * uint64(r.wr.Imm)
	n := min(uint64(r.wr.Imm), r.length-off)
	if !q.eng.scratch.has(n) {
		return false
	}
	b, ok := q.payload(r, off, n)
	if !ok {
		return false
	}
	body := q.eng.scratch.take(int(n)) // its program may write to the data while it is summed
	copy(body, b)
	o.Reset(q.rawRoute())
	end := rawHeadAt + copy(o.Head[rawHeadAt:rawHeadAt+MaxLargeHeaders], r.wr.Inline)
	if !offload.Segment(o.Head[rawHeadAt:end], body, q.req.idx, uint32(off), q.req.idx+1 == r.packets) {
		q.eng.counters.RequesterQPOperationErrors++ // its program has changed it meanwhile
		q.failLater(r, ring.LocalQPOperation)
		return false
	}
	if end-rawHeadAt+len(body) < leastFrame { // a segment that is short is in Head as a whole
		end += copy(o.Head[end:], body)
		clear(o.Head[end : rawHeadAt+leastFrame])
		end, body = rawHeadAt+leastFrame, nil
	}
	o.HeadStart, o.HeadEnd, o.Payload = rawHeadAt, uint16(end), body
	return true
}

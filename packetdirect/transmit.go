package packetdirect

import (
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/verbs"
)

// TransmitQueue sends frames in the order in which they are posted. One goroutine at a time uses a queue; different queues
// are independent.
type TransmitQueue struct {
	queue
	flags verbs.SendFlags // of frames that are not large
	large bool
	head  [MostHeaders]byte // scratch
	wrs   []verbs.SendWR
	sges  []verbs.SGE
}

// NewTransmitQueue makes a transmit queue. The errors are those of NewReceiveQueue.
func (a *Adapter) NewTransmitQueue(c QueueConfig) (*TransmitQueue, error) {
	q := &TransmitQueue{wrs: make([]verbs.SendWR, burst), sges: make([]verbs.SGE, burst)}
	for i := range q.wrs {
		q.wrs[i].SGE = q.sges[i : i+1 : i+1]
	}
	if q.large = c.Large; c.Checksums {
		q.flags = verbs.Checksums
	}
	q.post, q.completed = q.postBurst, sent
	if err := q.init(a, c, true, false); err != nil {
		return nil, err
	}
	return q, nil
}

// PostAndDrain gives the queue frames to send, and takes buffers whose frames have left, in their order; a frame that could not
// be sent is counted in Errors. A frame is 14 bytes, its Ethernet header, to LongestFrame, or large (Buffer.SetLarge); the source
// address is the program's choice, and what is shorter than 60 bytes is filled up. It returns how many of post the queue had room
// for, and how many it has put into drain. The rest is as with ReceiveQueue.PostAndDrain; besides, verbs.ErrInvalid is for a frame
// of another length.
func (q *TransmitQueue) PostAndDrain(post, drain []*Buffer) (posted, drained int, err error) {
	return q.postAndDrain(post, drain)
}

// postBurst posts at most a burst of frames, for which there is room. Only the last is signaled: those before it are done when it is.
func (q *TransmitQueue) postBurst(list []*Buffer) (n int, err error) {
	for ; n < len(list); n++ {
		b := list[n]
		if err = q.check(b); err != nil {
			break
		}
		if err = q.request(&q.wrs[n], b); err != nil {
			break
		}
		q.wrs[n].ID = uint64(q.tail)
		q.put(b)
	}
	if n == 0 {
		return 0, err
	}
	last := &q.wrs[n-1]
	last.Flags |= verbs.Signaled
	k, refused := q.qp.PostSends(q.wrs[:n])
	last.Flags &^= verbs.Signaled
	if refused != nil {
		q.unput(n - k)
		return k, refused
	}
	return n, err
}

// request fills in the request for a frame.
func (q *TransmitQueue) request(r *verbs.SendWR, b *Buffer) error {
	s := &r.SGE[0]
	*s = b.sge
	if b.segment == 0 {
		if b.n < leastFrame || b.n > q.a.LongestFrame() {
			return errLength
		}
		s.Length = uint32(b.n)
		r.Op, r.Flags, r.Headers = verbs.OpSend, q.flags, nil
		return nil
	}
	if err := q.checkLarge(b); err != nil {
		return err
	}
	s.Addr += uint64(b.headers)
	s.Length = uint32(b.n - b.headers)
	r.Op, r.Flags, r.Headers, r.Segment = verbs.OpLargeSend, 0, b.room[:b.headers], uint16(b.segment)
	return nil
}

// checkLarge reports why a large packet cannot be sent, as far as its length goes and where its headers should be.
func (q *TransmitQueue) checkLarge(b *Buffer) error {
	switch {
	case !q.large:
		return errSmall
	case b.segment < 1, b.segment > 0xffff, b.headers < leastFrame, b.headers > MostHeaders, b.n < b.headers, b.n-b.headers > mostLarge,
		b.headers+min(b.segment, b.n-b.headers) > q.a.LongestFrame(), (b.n-b.headers+b.segment-1)/b.segment > mostSegments,
		!offload.Segment(q.head[:copy(q.head[:], b.room[:b.headers])], nil, 0, 0, true):
		return errLarge
	}
	return nil
}

// sent notes a frame that has left, or has not, and that those before it have left.
func sent(q *queue, wc *verbs.WC) {
	to := uint32(wc.ID) + 1
	if int32(to-q.ended) <= 0 || int32(q.tail-to) < 0 {
		return
	}
	for ; q.ended != to; q.ended++ {
		if q.ended+1 == to && wc.Status != verbs.Success {
			q.counters.Errors++
			q.failed = true
			continue
		}
		frames, bytes := q.place(q.ended).frames()
		q.counters.Frames += frames
		q.counters.Bytes += bytes
	}
}

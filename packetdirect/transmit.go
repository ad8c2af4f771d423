package packetdirect

import (
	"github.com/softvpi/softvpi/verbs"
)

// TransmitQueue sends frames in the order in which they are posted. One goroutine at a time uses a queue; different queues
// are independent.
type TransmitQueue struct {
	queue
	wrs  []verbs.SendWR
	sges []verbs.SGE
}

// NewTransmitQueue makes a transmit queue. The errors are those of NewReceiveQueue.
func (a *Adapter) NewTransmitQueue(c QueueConfig) (*TransmitQueue, error) {
	q := &TransmitQueue{wrs: make([]verbs.SendWR, burst), sges: make([]verbs.SGE, burst)}
	for i := range q.wrs {
		q.wrs[i] = verbs.SendWR{Op: verbs.OpSend, SGE: q.sges[i : i+1 : i+1]}
		if c.Checksums {
			q.wrs[i].Flags = verbs.Checksums
		}
	}
	q.post, q.completed = q.postBurst, sent
	if err := q.init(a, c, true, false); err != nil {
		return nil, err
	}
	return q, nil
}

// PostAndDrain gives the queue frames to send, and takes buffers whose frames have left, in their order; a frame that could not
// be sent is counted in Errors. A frame is 14 bytes, its Ethernet header, to LongestFrame; the source address is the program's
// choice, and what is shorter than 60 bytes is filled up. It returns how many of post the queue had room for, and how many it has
// put into drain. The rest is as with ReceiveQueue.PostAndDrain; besides, verbs.ErrInvalid is for a frame of another length.
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
		if b.n < leastFrame || b.n > q.a.LongestFrame() {
			err = errLength
			break
		}
		s := &q.sges[n]
		*s = b.sge
		s.Length = uint32(b.n)
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
		q.counters.Frames++
		q.counters.Bytes += uint64(q.place(q.ended).n)
	}
}

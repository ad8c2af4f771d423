package packetdirect

import (
	"github.com/softvpi/softvpi/verbs"
)

// ReceiveQueue receives the frames of its filters, each in a buffer that was posted before. A frame that finds no buffer is
// lost. One goroutine at a time uses a queue; different queues are independent.
type ReceiveQueue struct {
	queue
	wrs  []verbs.RecvWR
	sges []verbs.SGE
}

// NewReceiveQueue makes a receive queue without filters. The errors are those of a raw packet queue pair: verbs.ErrInvalid,
// verbs.ErrExhausted, verbs.ErrAccess, verbs.ErrUnsupported.
func (a *Adapter) NewReceiveQueue(c QueueConfig) (*ReceiveQueue, error) {
	q := &ReceiveQueue{wrs: make([]verbs.RecvWR, burst), sges: make([]verbs.SGE, burst)}
	for i := range q.wrs {
		q.wrs[i].SGE = q.sges[i : i+1 : i+1]
	}
	q.post, q.completed = q.postBurst, received
	if err := q.init(a, c, false, true); err != nil {
		return nil, err
	}
	return q, nil
}

// PostAndDrain gives the queue buffers for frames to come, and takes those in which frames have arrived, in their order:
// Bytes of each is its frame, without FCS, and empty if the frame was longer than the buffer. It returns how many of post the
// queue had room for, and how many it has put into drain. post is read before drain is written, so both may be the same slice.
// It does not wait and allocates nothing. The errors are verbs.ErrClosed, verbs.ErrRemoved if the adapter was disabled,
// verbs.ErrBusy for a buffer that is posted already, and verbs.ErrInvalid for one of another adapter; what was drained before is
// valid.
func (q *ReceiveQueue) PostAndDrain(post, drain []*Buffer) (posted, drained int, err error) {
	return q.postAndDrain(post, drain)
}

// postBurst posts at most a burst of buffers, for which there is room.
func (q *ReceiveQueue) postBurst(list []*Buffer) (n int, err error) {
	for ; n < len(list); n++ {
		b := list[n]
		if err = q.check(b); err != nil {
			break
		}
		q.sges[n] = b.sge
		q.put(b)
	}
	k, refused := q.qp.PostRecvs(q.wrs[:n])
	if refused != nil {
		q.unput(n - k)
		return k, refused
	}
	return n, err
}

// received notes a frame that has arrived. Receives complete in the order in which they were posted.
func received(q *queue, wc *verbs.WC) {
	if q.ended == q.tail {
		return
	}
	b := q.place(q.ended)
	q.ended++
	if wc.Status != verbs.Success || int(wc.ByteLen) > len(b.room) {
		b.n, b.segment, b.good, b.hash = 0, 0, false, 0
		q.counters.Errors++
		q.broken = q.broken || wc.Status == verbs.WRFlush
		return
	}
	b.n, b.segment, b.good, b.hash = int(wc.ByteLen), 0, wc.Flags&verbs.GoodChecksums != 0, wc.Hash()
	q.counters.Frames++
	q.counters.Bytes += uint64(wc.ByteLen)
}

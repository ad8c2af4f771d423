package packetdirect

import (
	"context"
	"sync"

	"github.com/softvpi/softvpi/verbs"
)

const (
	// leastFrame is the length of a frame's header (IEEE 802.3).
	leastFrame = 14
	// MostHeaders is how many bytes of headers a large packet has at most, and mostLarge how many of data.
	MostHeaders = 128
	mostLarge   = 256 << 10
	// mostSegments is how many frames a large packet becomes at most.
	mostSegments = 4096
	// mostFrame is the size of the largest buffer: for a large packet.
	mostFrame = MostHeaders + mostLarge
	// defaultDepth is how many buffers a queue takes by default, mostDepth the most.
	defaultDepth = 512
	mostDepth    = 1 << 15
	// burst is how many buffers are posted, and completions taken, in one piece.
	burst = 64
)

// The errors of the data path are allocated in advance.
var (
	errClosed = failed("post and drain", verbs.ErrClosed, "")
	errPosted = failed("post and drain", verbs.ErrBusy, "a buffer is posted already")
	errOther  = failed("post and drain", verbs.ErrInvalid, "a buffer is of another adapter")
	errLength = failed("post and drain", verbs.ErrInvalid, "a frame is shorter than 14 bytes, or longer than LongestFrame")
	errSmall  = failed("post and drain", verbs.ErrInvalid, "a large packet is posted to a queue without Large")
	errLarge  = failed("post and drain", verbs.ErrInvalid,
		"a large packet has no TCP header, more than 256 KB of data, segments longer than LongestFrame, or more than 4096 of them")
	errBroken = failed("post and drain", verbs.ErrState, "the queue has ended with an error of the adapter's")
)

// QueueConfig describes a queue. The zero value has the default depth.
type QueueConfig struct {
	// Depth is how many buffers may be posted, 1 to 32768; 0: 512.
	Depth int
	// Checksums makes a transmit queue fill in the checksums of IPv4, TCP and UDP in its frames, in what leaves and not in the
	// buffers. Receive queues always look at those of their frames (Buffer.GoodChecksums); for one it only asks whether the adapter
	// does so. Where that is an older driver's, which does not, the queue is refused with verbs.ErrUnsupported.
	Checksums bool
	// Large lets a transmit queue send large packets of TCP (Buffer.SetLarge), which the adapter cuts. Where that is an older driver's,
	// which does not, the queue is refused with verbs.ErrUnsupported. Receive queues take no notice.
	Large bool
}

// Counters count what a queue has done.
type Counters struct {
	Frames, Bytes uint64 // received, or sent
	// Errors are buffers drained without a frame: too short for the frame that arrived, or not sent.
	Errors uint64
	// Empty are calls of PostAndDrain that drained nothing though they might have.
	Empty uint64
	// Waits are calls of Wait that slept.
	Waits uint64
}

// queue is what receive and transmit queues share: one side of a raw packet QP. It knows its buffers in the order in which
// they were posted, which is the order in which they complete.
type queue struct {
	a  *Adapter
	cq *verbs.CQ
	qp *verbs.QP

	mu     sync.Mutex
	closed bool
	broken bool      // nothing more will come
	failed bool      // a frame was not sent, and no later one is until the queue pair is ready again
	ring   []*Buffer // by position, modulo its length
	head   uint32    // position of the oldest posted
	tail   uint32    // position after the newest
	ended  uint32    // position after the newest that is done: the next to be drained are from head to here
	limit  uint32    // posted at most
	done   []verbs.WC
	// post posts at most a burst, for which there is room; completed takes note of a completion.
	post      func([]*Buffer) (int, error)
	completed func(*queue, *verbs.WC)
	counters  Counters
	filters   filters
}

// init makes a queue with so many places for sends and receives.
func (q *queue) init(a *Adapter, c QueueConfig, sends, receives bool) (err error) {
	if c.Depth == 0 {
		c.Depth = defaultDepth
	}
	if c.Depth < 1 || c.Depth > mostDepth {
		return failed("new queue", verbs.ErrInvalid, "Depth is %d, want 1 to %d, or 0 for %d", c.Depth, mostDepth, defaultDepth)
	}
	if c.Checksums && a.port.Offloads&verbs.FrameChecksums == 0 {
		return failed("new queue", verbs.ErrUnsupported, "Checksums is set, and the driver makes none")
	}
	places := 1
	for places < c.Depth {
		places *= 2
	}
	q.a, q.limit = a, uint32(c.Depth)
	q.ring, q.done = make([]*Buffer, places), make([]verbs.WC, burst)
	if q.cq, err = a.dev.CreateCQ(places + 1); err != nil {
		return err
	}
	r := verbs.QPConfig{Type: verbs.RawPacket, SendCQ: q.cq, RecvCQ: q.cq, SendDepth: 1, RecvDepth: 1}
	if sends {
		r.SendDepth = c.Depth
		if c.Large {
			r.Headers = MostHeaders
		}
	}
	if receives {
		r.RecvDepth = c.Depth
	}
	if q.qp, err = a.pd.CreateQP(r); err != nil {
		_ = q.cq.Close()
		return err
	}
	for _, s := range []verbs.QPState{verbs.StateInit, verbs.StateRTR, verbs.StateRTS} {
		if err = q.qp.Modify(verbs.QPAttr{State: s}, verbs.MaskState); err != nil {
			break
		}
	}
	if err == nil && !a.add(func() { a.queues[q] = true }) {
		err = failed("new queue", verbs.ErrClosed, "")
	}
	if err != nil {
		_ = q.end()
	}
	return err
}

// Close ends the queue and its filters. The buffers that are posted are the program's again. Closing twice is harmless. A queue of a
// Spread is refused with verbs.ErrBusy.
func (q *queue) Close() error {
	q.a.mu.Lock()
	for s := range q.a.spreads {
		if s.has(q) {
			q.a.mu.Unlock()
			return failed("close", verbs.ErrBusy, "the queue is one of a Spread")
		}
	}
	delete(q.a.queues, q)
	q.a.mu.Unlock()
	return q.end()
}

func (q *queue) end() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	if err := q.filters.end(); err != nil {
		return err
	}
	if err := q.qp.Close(); err != nil {
		return err
	}
	q.closed = true
	for ; q.head != q.tail; q.head++ {
		q.place(q.head).posted = false
	}
	return q.cq.Close()
}

func (q *queue) place(at uint32) *Buffer { return q.ring[at&uint32(len(q.ring)-1)] }

// room returns how many buffers may be posted.
func (q *queue) room() int { return int(q.limit - (q.tail - q.head)) }

// put records a buffer as posted.
func (q *queue) put(b *Buffer) {
	q.ring[q.tail&uint32(len(q.ring)-1)] = b
	b.posted = true
	q.tail++
}

// unput takes back the newest n buffers, which the adapter has not got.
func (q *queue) unput(n int) {
	for ; n > 0; n-- {
		q.tail--
		q.place(q.tail).posted = false
	}
}

// Depth returns how many buffers are posted and not drained (PDQueryQueueDepth).
func (q *queue) Depth() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int(q.tail - q.head)
}

// Counters returns what the queue has counted so far.
func (q *queue) Counters() Counters {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.counters
}

// check reports why a buffer cannot be posted.
func (q *queue) check(b *Buffer) error {
	switch {
	case b.pd != q.a.pd:
		return errOther
	case b.posted:
		return errPosted
	}
	return nil
}

// ready reports why the queue is of no use.
func (q *queue) ready() error {
	switch {
	case q.closed:
		return errClosed
	case q.broken:
		return errBroken
	}
	return nil
}

// postAndDrain is PostAndDrain of both kinds of queues.
func (q *queue) postAndDrain(post, drain []*Buffer) (posted, drained int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err = q.ready(); err != nil {
		return 0, 0, err
	}
	for posted < len(post) && err == nil {
		n := min(len(post)-posted, burst, q.room())
		if n == 0 {
			break
		}
		n, err = q.post(post[posted : posted+n])
		posted += n
	}
	if len(drain) == 0 {
		return posted, 0, err
	}
	if int(q.ended-q.head) < len(drain) && err == nil {
		err = q.complete()
	}
	if drained = q.drain(drain); drained == 0 {
		q.counters.Empty++
	}
	return posted, drained, err
}

// drain hands out buffers that are done, oldest first.
func (q *queue) drain(out []*Buffer) int {
	n := min(len(out), int(q.ended-q.head))
	for i := range n {
		b := q.place(q.head)
		b.posted = false
		out[i] = b
		q.head++
	}
	return n
}

// Wait waits until PostAndDrain would drain something: it polls for some microseconds and then sleeps. The error is that of
// ctx, verbs.ErrClosed, or verbs.ErrRemoved if the adapter was disabled. In a queue with nothing posted nothing ever comes.
func (q *queue) Wait(ctx context.Context) error {
	for {
		for range q.cq.Spins() {
			if n, err := q.look(); n > 0 || err != nil {
				return err
			}
		}
		t := q.cq.Arm(verbs.NotifyAny)
		if n, err := q.look(); n > 0 || err != nil {
			return err
		}
		q.mu.Lock()
		q.counters.Waits++
		q.mu.Unlock()
		if err := q.cq.Wait(ctx, t); err != nil {
			return err
		}
	}
}

// look returns how many buffers can be drained.
func (q *queue) look() (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.ready()
	if err == nil && q.ended == q.head {
		err = q.complete()
	}
	return int(q.ended - q.head), err
}

// complete takes completions, at most a burst.
func (q *queue) complete() error {
	n, err := q.cq.Poll(q.done)
	for i := range n {
		q.completed(q, &q.done[i])
	}
	if err == nil && q.failed && q.ended == q.tail {
		err = q.revive()
	}
	return err
}

// revive makes a queue pair usable again that has ended with an error: a frame that became too long because the wire's MTU was
// made smaller.
func (q *queue) revive() error {
	q.broken = true
	for _, s := range [...]verbs.QPState{verbs.StateReset, verbs.StateInit, verbs.StateRTR, verbs.StateRTS} {
		if err := q.qp.Modify(verbs.QPAttr{State: s}, verbs.MaskState); err != nil {
			return err
		}
	}
	q.broken, q.failed = false, false
	return nil
}

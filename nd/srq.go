package nd

import (
	"context"
	"runtime"
	"sync"

	"github.com/softvpi/softvpi/verbs"
)

// SharedReceiveQueue holds receives for several queue pairs.
type SharedReceiveQueue struct {
	overlapped
	adapter *Adapter
	srq     *verbs.SRQ

	state     sync.Mutex
	threshold int
	sub       *subscription
	event     chan struct{} // closed and replaced when the limit was reached

	most int // maximum entries of a receive
}

// CreateSharedReceiveQueue creates a shared receive queue for at least queueDepth receives of up to
// maxRequestSGE entries. Notify completes when fewer than notifyThreshold receives are left.
// ND_INVALID_PARAMETER_3 and _4 refer to queueDepth and maxRequestSGE.
func (a *Adapter) CreateSharedReceiveQueue(queueDepth, maxRequestSGE, notifyThreshold int) (*SharedReceiveQueue, error) {
	const op = "Adapter.CreateSharedReceiveQueue"
	l := a.dev.Limits()
	sges := min(l.MaxSGE, maxSGE)
	switch {
	case queueDepth < 1 || queueDepth > l.MaxSRQDepth:
		return nil, refuse(StatusInvalidParameter3, op, "queueDepth is %d, want 1 to %d", queueDepth, l.MaxSRQDepth)
	case maxRequestSGE < 0 || maxRequestSGE > sges:
		return nil, refuse(StatusInvalidParameter4, op, "maxRequestSGE is %d, want 0 to %d", maxRequestSGE, sges)
	case notifyThreshold < 0 || notifyThreshold > queueDepth:
		return nil, refuse(StatusInvalidParameter5, op, "notifyThreshold is %d, want 0 to queueDepth (%d)", notifyThreshold, queueDepth)
	}
	maxRequestSGE = max(maxRequestSGE, 1)
	srq, err := a.pd.CreateSRQ(verbs.SRQConfig{Depth: queueDepth, MaxSGE: maxRequestSGE})
	if err != nil {
		return nil, fail(op, err)
	}
	q := &SharedReceiveQueue{adapter: a, srq: srq, threshold: notifyThreshold, most: maxRequestSGE, event: make(chan struct{})}
	q.sub = &subscription{notify: q.handle}
	if err := a.provider.subscribe(q.sub); err != nil {
		_ = srq.Close()
		return nil, err
	}
	return q, nil
}

func (q *SharedReceiveQueue) handle(e verbs.Event) {
	mine := e.Object == q.srq.Handle() && (e.Type == verbs.EventSRQLimit || e.Type == verbs.EventSRQError)
	if !mine && e.Type != verbs.EventDeviceFatal && e.Missed == 0 {
		return
	}
	q.state.Lock()
	defer q.state.Unlock()
	q.tell()
}

// GetNotifyAffinity is like that of CompletionQueue.
func (q *SharedReceiveQueue) GetNotifyAffinity() (group uint16, affinity uint64, err error) {
	if n := runtime.NumCPU(); n < 64 {
		return 0, 1<<n - 1, nil
	}
	return 0, ^uint64(0), nil
}

// Modify changes the depth and the threshold of Notify; 0 keeps the old value. Waiting calls of Notify use
// the new threshold. ND_BUFFER_OVERFLOW if more receives are posted than the new depth holds.
func (q *SharedReceiveQueue) Modify(queueDepth, notifyThreshold int) error {
	const op = "SharedReceiveQueue.Modify"
	q.state.Lock()
	defer q.state.Unlock()
	if most := q.adapter.dev.Limits().MaxSRQDepth; queueDepth < 0 || queueDepth > most {
		return refuse(StatusInvalidParameter, op, "queueDepth is %d, want 0 to %d", queueDepth, most)
	}
	depth, threshold := queueDepth, notifyThreshold
	if depth == 0 {
		depth = q.srq.Depth()
	}
	if threshold == 0 {
		threshold = q.threshold
	}
	if threshold < 0 || threshold > depth {
		return refuse(StatusInvalidParameter, op, "notifyThreshold is %d, want 0 to the depth (%d)", threshold, depth)
	}
	if err := q.resize(queueDepth); err != nil {
		return err
	}
	q.threshold = threshold
	q.tell()
	return nil
}

// resize changes the depth unless it is 0. It disarms the limit, which may be too large for the new depth;
// whoever waits in Notify arms it again.
func (q *SharedReceiveQueue) resize(depth int) error {
	if depth == 0 {
		return nil
	}
	const op = "SharedReceiveQueue.Modify"
	if err := q.srq.Modify(0); err != nil {
		return fail(op, err)
	}
	err := fail(op, q.srq.Resize(depth))
	if e, ok := err.(*Error); ok && e.Status == StatusDeviceBusy {
		e.Status = StatusBufferOverflow
	}
	if err != nil {
		q.tell()
	}
	return err
}

// tell makes the calls of Notify check again. The caller holds state.
func (q *SharedReceiveQueue) tell() {
	close(q.event)
	q.event = make(chan struct{})
}

// Notify returns when fewer receives than the threshold are left, which may be at once. With a threshold
// of 0 it waits until it is canceled.
func (q *SharedReceiveQueue) Notify(ctx context.Context) error {
	const op = "SharedReceiveQueue.Notify"
	ctx, done := q.begin(ctx)
	defer done()
	for {
		q.state.Lock()
		threshold, event := q.threshold, q.event
		q.state.Unlock()
		if threshold > 0 {
			if err := q.srq.Modify(threshold); err != nil {
				return fail(op, err)
			}
		}
		info, err := q.srq.Query()
		if err != nil {
			return fail(op, err)
		}
		if info.Posted < threshold {
			return nil
		}
		select {
		case <-event:
		case <-ctx.Done():
			return fail(op, canceled(ctx.Err()))
		}
	}
}

// Receive posts entries, possibly none, for one Send of any peer. Errors as for QueuePair.Receive.
func (q *SharedReceiveQueue) Receive(requestContext uint64, sge []SGE) error {
	if len(sge) > q.most {
		return errTooManySGE
	}
	var few [fewSGE]verbs.SGE
	list := few[:]
	if len(sge) > fewSGE {
		list = make([]verbs.SGE, maxSGE)
	}
	wr := verbs.RecvWR{ID: requestContext, SGE: list[:len(sge)]}
	if err := fill(wr.SGE, sge, q.adapter.dev.Limits().MaxMessage); err != nil {
		return err
	}
	err := q.srq.PostRecv(&wr)
	if err == nil {
		return nil
	}
	if verbs.IsQueueFull(err) {
		return errSharedFull
	}
	return fail("SharedReceiveQueue.Receive", err)
}

// Close destroys the queue and cancels the calls waiting on it. ND_DEVICE_BUSY while a queue pair uses it.
func (q *SharedReceiveQueue) Close() error {
	if err := q.srq.Close(); err != nil {
		return fail("SharedReceiveQueue.Close", err)
	}
	q.adapter.provider.unsubscribe(q.sub)
	return q.CancelOverlappedRequests()
}

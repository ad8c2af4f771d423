package nd

import (
	"context"
	"runtime"

	"github.com/softvpi/softvpi/verbs"
)

// CompletionQueue holds the results of requests.
type CompletionQueue struct {
	overlapped
	adapter *Adapter
	cq      *verbs.CQ
}

// Result is the result of a request (ND2_RESULT).
type Result struct {
	Status           Status
	BytesTransferred uint32 // receives only
	QueuePairContext any    // QueuePairConfig.Context; nil once the queue pair is closed
	RequestContext   uint64 // of the call that posted the request
	RequestType      RequestType
}

// Err returns nil if the request succeeded, else the error of its status.
func (r *Result) Err() error {
	if r.Status == StatusSuccess {
		return nil
	}
	return &Error{Status: r.Status, Op: r.RequestType.String()}
}

// CreateCompletionQueue creates a completion queue that holds at least queueDepth results.
// ND_INVALID_PARAMETER_3: the depth is not 1 to MaxCompletionQueueDepth.
func (a *Adapter) CreateCompletionQueue(queueDepth int) (*CompletionQueue, error) {
	const op = "Adapter.CreateCompletionQueue"
	if most := a.dev.Limits().MaxCQDepth; queueDepth < 1 || queueDepth > most {
		return nil, refuse(StatusInvalidParameter3, op, "queueDepth is %d, want 1 to %d", queueDepth, most)
	}
	cq, err := a.dev.CreateCQ(queueDepth)
	if err != nil {
		return nil, fail(op, err)
	}
	return &CompletionQueue{adapter: a, cq: cq}, nil
}

// GetNotifyAffinity returns the processor group and the processors that handle notifications: all of group
// 0, because any thread of the program may drive the adapter.
func (q *CompletionQueue) GetNotifyAffinity() (group uint16, affinity uint64, err error) {
	n := runtime.NumCPU()
	if n >= 64 {
		return 0, ^uint64(0), nil
	}
	return 0, 1<<n - 1, nil
}

// CQ returns the underlying verbs queue. GetResults must take its completions.
func (q *CompletionQueue) CQ() *verbs.CQ { return q.cq }

// Resize makes the queue hold at least queueDepth results from now on; results that are waiting in it are
// kept. ND_INVALID_PARAMETER: the depth is not 1 to MaxCompletionQueueDepth. ND_BUFFER_OVERFLOW: more results
// than that are waiting, or results from before the last Resize still are; take them first.
func (q *CompletionQueue) Resize(queueDepth int) error {
	err := fail("CompletionQueue.Resize", q.cq.Resize(queueDepth))
	if e, ok := err.(*Error); ok && e.Status == StatusDeviceBusy {
		e.Status = StatusBufferOverflow
	}
	return err
}

// Notify returns when there is a result of kind t that arrived after GetResults last found none, or that
// no GetResults has taken. One event ends all waiting calls; take results until there are none, and call
// Notify again. Errors: ND_BUFFER_OVERFLOW (more results arrived than the queue holds; it is broken),
// ND_CANCELED, ND_DEVICE_REMOVED.
func (q *CompletionQueue) Notify(ctx context.Context, t NotifyType) error {
	const op = "CompletionQueue.Notify"
	var kind verbs.Notify
	switch t {
	case NotifyErrors:
		kind = verbs.NotifyErrors
	case NotifyAny:
		kind = verbs.NotifyAny
	case NotifySolicited:
		kind = verbs.NotifySolicited
	default:
		return refuse(StatusInvalidParameter, op, "type is %d, want NotifyErrors, NotifyAny or NotifySolicited", t)
	}
	ctx, done := q.begin(ctx)
	defer done()
	ticket := q.cq.Arm(kind)
	if !q.cq.Pending(kind) && q.cq.Err() == nil {
		if err := q.cq.Wait(ctx, ticket); err != nil {
			return fail(op, err)
		}
	}
	return fail(op, q.cq.Err())
}

// fewResults and resultBatch are how many results are converted at a time: few at first, because most
// polls find none or one and the batch is cleared each time.
const (
	fewResults  = 4
	resultBatch = 16
)

// GetResults takes the results that are available, at most len(results), and returns their number. It does
// not wait and allocates nothing. A result with an error status means that its connection has ended. The
// error is ND_BUFFER_OVERFLOW: results were lost and the queue is broken.
func (q *CompletionQueue) GetResults(results []Result) (int, error) {
	var batch [fewResults]verbs.WC
	n, err := q.results(results, batch[:])
	if n == 0 && err != nil {
		return 0, fail("CompletionQueue.GetResults", err)
	}
	if n < fewResults || n == len(results) || err != nil {
		return n, nil
	}
	return n + q.moreResults(results[n:]), nil
}

// moreResults continues after a full first batch. The next call reports an error.
func (q *CompletionQueue) moreResults(results []Result) (total int) {
	var batch [resultBatch]verbs.WC
	for total < len(results) {
		n, err := q.results(results[total:], batch[:])
		total += n
		if n < resultBatch || err != nil {
			break
		}
	}
	return total
}

// results polls once, for at most a batch.
func (q *CompletionQueue) results(results []Result, batch []verbs.WC) (int, error) {
	n, err := q.cq.Poll(batch[:min(len(batch), len(results))])
	for i := range n {
		q.convert(&results[i], &batch[i])
	}
	return n, err
}

// WaitResults takes at least one and at most len(results) results: it polls for some microseconds and then
// waits like Notify.
func (q *CompletionQueue) WaitResults(ctx context.Context, results []Result) (int, error) {
	const op = "CompletionQueue.WaitResults"
	if len(results) == 0 {
		return 0, refuse(StatusInvalidParameter, op, "results is empty")
	}
	for range q.cq.Spins() {
		if n, err := q.GetResults(results); n > 0 || err != nil {
			return n, err
		}
	}
	for {
		if err := q.Notify(ctx, NotifyAny); err != nil {
			return 0, err
		}
		if n, err := q.GetResults(results); n > 0 || err != nil {
			return n, err
		}
		if err := ctx.Err(); err != nil { // other callers may keep taking the results that we are notified of
			return 0, &Error{Status: StatusCanceled, Op: op, Cause: err}
		}
	}
}

func (q *CompletionQueue) convert(r *Result, wc *verbs.WC) {
	receive := wc.Flags&verbs.ReceiveSide != 0
	*r = Result{
		Status: completionStatus(wc.Status, receive), QueuePairContext: q.adapter.pairs.context(wc.Context),
		RequestContext: wc.ID, RequestType: RequestReceive,
	}
	if receive {
		if wc.Status == verbs.Success {
			r.BytesTransferred = wc.ByteLen
		}
		return
	}
	r.RequestType = requestType(wc.Op)
}

// Close destroys the queue and cancels the calls waiting on it. ND_DEVICE_BUSY while a queue pair uses it.
func (q *CompletionQueue) Close() error {
	if err := q.cq.Close(); err != nil {
		return fail("CompletionQueue.Close", err)
	}
	return q.CancelOverlappedRequests()
}

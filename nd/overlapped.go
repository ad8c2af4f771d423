package nd

import (
	"context"
	"errors"
	"sync"

	"github.com/softvpi/softvpi/verbs"
)

// canceled returns the error of a call whose context ended.
func canceled(cause error) error { return &canceledError{cause} }

type canceledError struct{ cause error }

func (e *canceledError) Error() string   { return e.cause.Error() }
func (e *canceledError) Unwrap() []error { return []error{verbs.ErrCanceled, e.cause} }

var errRequestsCanceled = errors.New("overlapped requests were canceled")

// overlapped is embedded in objects with calls that wait.
type overlapped struct {
	mu     sync.Mutex
	base   context.Context
	cancel context.CancelCauseFunc
}

// CancelOverlappedRequests makes all calls now waiting on this object return ND_CANCELED.
func (o *overlapped) CancelOverlappedRequests() error {
	o.mu.Lock()
	cancel := o.cancel
	o.base, o.cancel = nil, nil
	o.mu.Unlock()
	if cancel != nil {
		cancel(errRequestsCanceled)
	}
	return nil
}

// begin returns a context for a call that waits: it ends with ctx, or when requests are canceled. The
// caller calls done when the call returns.
func (o *overlapped) begin(ctx context.Context) (_ context.Context, done func()) {
	o.mu.Lock()
	if o.base == nil {
		o.base, o.cancel = context.WithCancelCause(context.Background())
	}
	base := o.base
	o.mu.Unlock()
	if ctx.Done() == nil {
		return base, func() {}
	}
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(base, func() { cancel(errRequestsCanceled) })
	return both, func() { stop(); cancel(nil) }
}

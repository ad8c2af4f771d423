package api

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	makers      = 2                // answers that are made at once; the others wait for their turn
	maxTurn     = 10 * time.Second // how long one waits
	smallAnswer = 16 << 10         // bytes of an answer that always finds room
	retryAfter  = "1"              // seconds, for whom there is no room
)

// answers bound the memory that answers take: few are made at a time, and what readers have not taken yet of those
// that are made has a limit, over which the next ones are refused. One answer alone may be larger than the limit.
type answers struct {
	turns chan struct{}
	limit int64

	mu       sync.Mutex
	underWay int64
}

func newAnswers(limit int64) *answers {
	return &answers{turns: make(chan struct{}, makers), limit: limit}
}

// reserve takes n bytes, where there is room for them.
func (a *answers) reserve(n int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n > smallAnswer && a.underWay > 0 && a.underWay+n > a.limit {
		return false
	}
	a.underWay += n
	return true
}

func (a *answers) release(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.underWay -= n
}

// turn is the right to make an answer.
type turn struct {
	answers *answers
	have    bool
}

type turnKey struct{}

// take waits for the turn.
func (t *turn) take(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, maxTurn)
	defer cancel()
	select {
	case t.answers.turns <- struct{}{}:
		t.have = true
	case <-ctx.Done():
	}
	return t.have
}

func (t *turn) give() {
	if t.have {
		t.have = false
		<-t.answers.turns
	}
}

// aside runs what waits for something outside of the turn of its request.
func aside(ctx context.Context, wait func()) error {
	t, ok := ctx.Value(turnKey{}).(*turn)
	if !ok {
		wait()
		return nil
	}
	t.give()
	wait()
	if !t.take(ctx) {
		return errBusy
	}
	return nil
}

// streams reports whether a request's answer goes on, and is written as it comes.
func streams(r *http.Request) bool { return r.URL.Path == "/capture" || r.URL.Path == "/events/follow" }

// bounded keeps the answers that next reads things for within bounds. What changes things is answered in few bytes, and
// always: nobody is to be told that a change found no room which was made.
func (a *answers) bounded(write time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead || streams(r) {
			next.ServeHTTP(w, r)
			return
		}
		made, ok := a.make(next, r)
		if !ok {
			w.Header().Set("Retry-After", retryAfter)
			refuse(w, http.StatusServiceUnavailable, errBusy.Error())
			return
		}
		defer a.release(made.size())
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(write)) // not every writer has deadlines
		made.send(w)
	})
}

// make has the answer made, and reserves its bytes.
func (a *answers) make(next http.Handler, r *http.Request) (*answer, bool) {
	t := &turn{answers: a}
	if !t.take(r.Context()) {
		return nil, false
	}
	defer t.give()
	made := &answer{header: http.Header{}, status: http.StatusOK}
	next.ServeHTTP(made, r.WithContext(context.WithValue(r.Context(), turnKey{}, t)))
	return made, a.reserve(made.size())
}

// answer keeps what a handler answers.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// size is the memory that the answer takes.
func (a *answer) size() int64 { return int64(a.body.Cap()) }

func (a *answer) send(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	if a.body.Len() > 0 {
		w.Header().Set("Content-Length", strconv.Itoa(a.body.Len()))
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // a reader that went away
}

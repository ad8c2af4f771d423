package server

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	makers      = 2                // answers generated at a time; others wait for their turn
	maxTurn     = 10 * time.Second // maximum wait for a turn
	smallAnswer = 16 << 10         // bytes of an answer that is always accepted
	retryAfter  = "1"              // seconds; sent with refusals
)

// answers limits the memory used by answers: few are generated at a time, and when the bytes that readers
// have not taken yet reach a limit, further answers are refused. A single answer may exceed the limit.
type answers struct {
	turns chan struct{}
	limit int64

	mu       sync.Mutex
	underWay int64
}

func newAnswers(limit int64) *answers {
	return &answers{turns: make(chan struct{}, makers), limit: limit}
}

// reserve reserves n bytes, if there is room.
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

// turn is the right to generate an answer.
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

// aside gives up the request's turn while wait waits for something.
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

// streams reports whether the answer to a request continues, and is written as it is generated.
func streams(r *http.Request) bool { return r.URL.Path == "/capture" || r.URL.Path == "/events/follow" }

// bounded limits the answers that next gives to reading requests. Changes are always answered, in few
// bytes: nobody must be told that there was no room for a change that was made.
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
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(write)) // not every writer supports deadlines
		made.send(w)
	})
}

// make generates the answer and reserves its bytes.
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

// answer buffers a handler's answer.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) { a.status = status }

func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// size returns the memory that the answer occupies.
func (a *answer) size() int64 { return int64(a.body.Cap()) }

func (a *answer) send(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	if a.body.Len() > 0 {
		w.Header().Set("Content-Length", strconv.Itoa(a.body.Len()))
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // fails if the reader has gone
}

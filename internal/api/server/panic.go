package server

import (
	"net/http"
	"runtime/debug"
)

// Panic is one in the handler of a request: a fault of the driver, which would otherwise be seen as a connection that ends.
type Panic struct {
	Request string // its method and path
	Value   any
	Stack   []byte // the traceback of the goroutine
}

// longestPath is how much of a path, which is the client's, is kept.
const longestPath = 200

// recover keeps a panic in one request from affecting the rest of the driver. It is told, and answered with status 500, unless the answer
// has begun: then the connection ends, so that nobody takes it for a whole one.
func (s *Server) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &begun{ResponseWriter: w}
		defer func() {
			v := recover()
			switch v {
			case nil:
				return
			case http.ErrAbortHandler: // a handler's way to end the connection
				panic(v)
			}
			path := r.URL.EscapedPath()
			s.panicked(Panic{Request: r.Method + " " + path[:min(len(path), longestPath)], Value: v, Stack: debug.Stack()})
			if t.it {
				panic(http.ErrAbortHandler)
			}
			refuse(w, http.StatusInternalServerError, "the driver has a fault: the request ended in a panic, of which its log has the traceback")
		}()
		next.ServeHTTP(t, r)
	})
}

// panicked tells of a panic. Whoever hears of it does not get the request into trouble by another one.
func (s *Server) panicked(p Panic) {
	s.cfg.Log.Error("a management request has panicked", "request", p.Request, "panic", p.Value, "stack", string(p.Stack))
	if s.cfg.Panicked == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			s.cfg.Log.Error("a panic was not told", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	s.cfg.Panicked(p)
}

// begun notes whether an answer has begun.
type begun struct {
	http.ResponseWriter
	it bool
}

// WriteHeader implements http.ResponseWriter.
func (b *begun) WriteHeader(status int) {
	b.it = b.it || status >= http.StatusOK // those before are not answers
	b.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (b *begun) Write(p []byte) (int, error) {
	b.it = true
	return b.ResponseWriter.Write(p)
}

// Unwrap serves http.ResponseController.
func (b *begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }

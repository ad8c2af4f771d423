package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/softvpi/softvpi/internal/counters/collector"
	"github.com/softvpi/softvpi/internal/events"
)

// Limits limits what clients can make the server keep. Zero fields select the defaults.
type Limits struct {
	Clients int           // simultaneous connections, above which new ones wait; 2048
	Body    int64         // bytes of a request; 8 MiB
	Header  time.Duration // for the header of a request; 5 s
	Read    time.Duration // for a whole request; 30 s
	Write   time.Duration // for an answer, and for each piece of a stream; 30 s
	Idle    time.Duration // between requests; 60 s
	Answers int64         // bytes of answers not yet taken by readers, above which large ones are refused; 64 MiB
}

func (l Limits) complete() Limits {
	setDefault(&l.Clients, 2048)
	setDefault(&l.Body, 8<<20)
	setDefault(&l.Header, 5*time.Second)
	setDefault(&l.Read, 30*time.Second)
	setDefault(&l.Write, 30*time.Second)
	setDefault(&l.Idle, time.Minute)
	setDefault(&l.Answers, 64<<20)
	return l
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Config configures a Server.
type Config struct {
	Driver  Driver
	Version string
	// Events is the event log; nil: there is none.
	Events *events.Log
	// Counters are those of the adapters; nil: there are none.
	Counters *collector.Collector
	Limits   Limits
	Log      *slog.Logger // nil: nothing
	// Panicked is told of panics in requests, by several goroutines at a time; nil: nobody is.
	Panicked func(Panic)
}

// Server serves the management interface.
type Server struct {
	cfg     Config
	limits  Limits
	handler http.Handler
	server  *http.Server
	prepare func() // makes what follows, once
	mux     *http.ServeMux
	api     huma.API
	calls   *requestLog   // nil: the driver has no diagnostics
	done    chan struct{} // closed with the server
	once    sync.Once
	open    atomic.Int64 // connections
	answers *answers
}

// maxHeader limits the header of a request in bytes.
const maxHeader = 64 << 10

// New makes a server. ServeUnix and Serve let clients to it. Its routes are made for the first request: describing all that they take and
// answer costs as much as a quarter of a driver's start, and few of those that tests start are ever asked.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, limits: cfg.Limits.complete(), done: make(chan struct{})}
	if s.cfg.Log == nil {
		s.cfg.Log = slog.New(slog.DiscardHandler)
	}
	if _, ok := cfg.Driver.(Diagnostics); ok {
		s.calls = newRequestLog(cfg.Driver.Overview().Adapters)
	}
	s.prepare = sync.OnceFunc(s.makeRoutes)
	s.answers = newAnswers(s.limits.Answers)
	s.handler = limitBody(s.limits.Body, s.recover(guard(s.answers.bounded(s.limits.Write, http.HandlerFunc(s.route)))))
	s.server = s.httpServer(s.handler)
	s.server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return WithAccess(ctx, peerAccess(c))
	}
	return s
}

func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	s.prepare()
	s.mux.ServeHTTP(w, r)
}

func (s *Server) makeRoutes() {
	s.mux = http.NewServeMux()
	h := huma.DefaultConfig("SoftVPI driver", s.cfg.Version)
	h.CreateHooks, h.DocsPath, h.SchemasPath = nil, "", "" // no scripts from elsewhere, no $schema in answers
	h.OpenAPIPath = ""                                     // see describe
	h.Info.Description = "The management interface of a SoftVPI driver."
	s.api = humago.New(s.mux, h)
	s.routes()
	s.describe()
}

func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: s.limits.Header, ReadTimeout: s.limits.Read, WriteTimeout: s.limits.Write,
		IdleTimeout: s.limits.Idle, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
}

// ServeUnix serves on a unix socket until Close.
func (s *Server) ServeUnix(l net.Listener) error {
	return done(s.server.Serve(newLimitListener(l, s.limits.Clients, &s.open)))
}

// Close ends the server with all of its connections.
func (s *Server) Close() error {
	s.once.Do(func() { close(s.done) })
	return s.server.Close()
}

func done(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// maxDrain is how much of a request that is too large is read and discarded, so that its sender gets to
// read the answer.
const maxDrain = 64 << 20

// limitBody refuses requests of more than n bytes.
func limitBody(n int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength <= n {
			r.Body = http.MaxBytesReader(w, r.Body, n)
			next.ServeHTTP(w, r)
			return
		}
		_, _ = io.CopyN(io.Discard, r.Body, maxDrain) // a sender that has gone needs no answer
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has %d bytes; allowed: %d", r.ContentLength, n))
	})
}

// fail answers a raw request with an error.
func fail(w http.ResponseWriter, err error) {
	var m *huma.ErrorModel
	if errors.As(problem(err), &m) {
		write(w, m)
	}
}

// refuse answers with a problem document.
func refuse(w http.ResponseWriter, status int, detail string) {
	write(w, &huma.ErrorModel{Status: status, Title: http.StatusText(status), Detail: detail})
}

func write(w http.ResponseWriter, m *huma.ErrorModel) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(m.Status)
	_ = json.NewEncoder(w).Encode(m) // fails if the client has gone
}

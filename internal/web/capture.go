package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/api"
)

// captures are those that these pages started and that still run, by their ids.
type captures struct {
	mu  sync.Mutex
	all map[string]*capture
}

// capture is one of them.
type capture struct {
	ID, Adapter string
	Started     time.Time
	bytes       atomic.Uint64
}

// Bytes is how much the browser was sent.
func (c *capture) Bytes() uint64 { return c.bytes.Load() }

func (c *captures) add(x *capture) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]*capture{}
	}
	c.all[x.ID] = x
}

func (c *captures) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, id)
}

func (c *captures) list() []*capture {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*capture, 0, len(c.all))
	for _, x := range c.all {
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b *capture) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID)) })
	return out
}

// capture shows the captures that run.
func (s *Server) capture(q *request) error {
	v, err := s.view(q, "Capture", "capture")
	if err != nil {
		return err
	}
	v.Data = s.captures.list()
	return s.show(q, "capture", v)
}

// startCapture answers with a capture as a file, which goes on until somebody stops it or the browser goes away.
func (s *Server) startCapture(q *request) error {
	form := q.r.PostForm
	ask := url.Values{"adapter": {form.Get("adapter")}, "snap": {form.Get("snap")}}
	r := q.r.Clone(api.WithAccess(q.r.Context(), api.ChangeAccess))
	r.Method, r.Body, r.ContentLength = http.MethodGet, http.NoBody, 0
	r.URL = &url.URL{Path: "/capture", RawQuery: ask.Encode()}
	r.RequestURI = r.URL.RequestURI()
	w := &captureWriter{ResponseWriter: q.w, captures: &s.captures, running: &capture{Adapter: form.Get("adapter"), Started: s.cfg.Now()}}
	defer w.end()
	s.cfg.API.Handler().ServeHTTP(w, r)
	return nil
}

// captureWriter passes a capture on and keeps it among those that run.
type captureWriter struct {
	http.ResponseWriter
	captures *captures
	running  *capture
}

func (w *captureWriter) Write(b []byte) (int, error) {
	if w.running.ID == "" {
		if w.running.ID = w.Header().Get(api.CaptureHeader); w.running.ID != "" {
			w.captures.add(w.running)
		}
	}
	n, err := w.ResponseWriter.Write(b)
	w.running.bytes.Add(uint64(n))
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *captureWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *captureWriter) end() {
	if w.running.ID != "" {
		w.captures.drop(w.running.ID)
	}
}

// stopCapture ends a capture: its file is completed with its statistics.
func (s *Server) stopCapture(q *request) error {
	id := q.r.PathValue("id")
	if err := s.client.StopCapture(q.r.Context(), id); err != nil {
		return err
	}
	return s.done(q, "The capture has ended; its file is complete.", Prefix+"capture")
}

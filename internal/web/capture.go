package web

import (
	"net/http"
	"net/url"

	"github.com/softvpi/softvpi/internal/api/server"
)

// capture shows the running captures, whoever started them.
func (s *Server) capture(q *request) error {
	v, err := s.view(q, "Capture", "capture")
	if err != nil {
		return err
	}
	if v.Data, err = s.client.Captures(q.r.Context()); err != nil {
		return err
	}
	return s.show(q, "capture", v)
}

// startCapture answers with a capture as a file, which continues until somebody stops it or the browser
// disconnects.
func (s *Server) startCapture(q *request) error {
	form := q.r.PostForm
	ask := url.Values{"adapter": {form.Get("adapter")}, "snap": {form.Get("snap")}}
	r := q.r.Clone(server.WithAccess(q.r.Context(), server.ChangeAccess))
	r.Method, r.Body, r.ContentLength = http.MethodGet, http.NoBody, 0
	r.URL = &url.URL{Path: "/capture", RawQuery: ask.Encode()}
	r.RequestURI = r.URL.RequestURI()
	s.cfg.API.Handler().ServeHTTP(q.w, r)
	return nil
}

// stopCapture ends a capture: its file gets the final statistics.
func (s *Server) stopCapture(q *request) error {
	ended, err := s.client.EndCapture(q.r.Context(), q.r.PathValue("id"))
	if err != nil {
		return err
	}
	notice := "The capture has ended; its file is complete."
	if ended.Problem != "" {
		notice = "The capture has ended; its file is not complete: " + ended.Problem
	}
	return s.done(q, notice, Prefix+"capture")
}

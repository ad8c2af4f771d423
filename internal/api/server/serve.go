package server

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"

	"github.com/softvpi/softvpi/internal/api"
)

// Handler serves the interface to clients that the caller has authenticated, with the access given by
// WithAccess.
func (s *Server) Handler() http.Handler { return s.handler }

// WithToken serves the interface to clients that send the token.
func (s *Server) WithToken(token string) http.Handler { return tokenAccess(token, s.handler) }

// Serve serves h on TCP under the server's limits until stop is called, with TLS if there is a
// certificate.
func (s *Server) Serve(l net.Listener, h http.Handler, cert *tls.Certificate) (stop func() error) {
	t := s.httpServer(s.recover(h))
	l = newLimitListener(l, s.limits.Clients, &s.open)
	serve := func() error { return t.Serve(l) }
	if cert != nil {
		t.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12}
		serve = func() error { return t.ServeTLS(l, "", "") }
	}
	go func() {
		if err := done(serve()); err != nil {
			s.cfg.Log.Error("management port", "error", err)
		}
	}()
	return t.Close
}

// Local returns a client in the driver's own process, which may make changes.
func (s *Server) Local() *api.Client {
	return api.NewClientOver("this process", "http://driver", local{s})
}

// local is a transport without a connection. It buffers complete answers, so streams need Handler.
type local struct{ server *Server }

// RoundTrip serves a request.
func (l local) RoundTrip(r *http.Request) (*http.Response, error) {
	body := r.Body
	if body == nil {
		body = http.NoBody
	}
	defer body.Close()
	served := r.Clone(WithAccess(r.Context(), ChangeAccess))
	served.Body, served.RequestURI = body, r.URL.RequestURI()
	a := &answer{header: http.Header{}, status: http.StatusOK}
	l.server.handler.ServeHTTP(a, served)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: a.header,
		Body: io.NopCloser(&a.body), ContentLength: int64(a.body.Len()), Request: r,
	}, nil
}

package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// Service is what programs do over connections of package net.
type Service interface {
	// Serve answers requests on the connections that l accepts. It returns when l is closed.
	Serve(l net.Listener) error
	// Client returns a function that sends a request of this many bytes over a connection of its own and waits for
	// the answer, which is as long. The function close closes the connection.
	Client(dial Dial, bytes int) (call, close func() error, err error)
}

// Dial opens a connection to the service.
type Dial func(context.Context) (net.Conn, error)

// Services are the services by name. A program that measures others adds them before Serve.
var Services = map[string]Service{"echo": echo{}, "http": web{}}

// echo sends back the bytes that arrive.
type echo struct{}

func (echo) Serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			b := make([]byte, 64<<10)
			for {
				n, err := c.Read(b)
				if err != nil {
					return
				}
				if _, err := c.Write(b[:n]); err != nil {
					return
				}
			}
		}()
	}
}

func (echo) Client(dial Dial, bytes int) (call, close func() error, err error) {
	c, err := dial(context.Background())
	if err != nil {
		return nil, nil, err
	}
	out, in := make([]byte, bytes), make([]byte, bytes)
	return func() error {
		if _, err := c.Write(out); err != nil {
			return err
		}
		_, err := io.ReadFull(c, in)
		return err
	}, c.Close, nil
}

// web is net/http: the answer to a POST is its body.
type web struct{}

func (web) Serve(l net.Listener) error {
	err := (&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = w.Write(b)
	})}).Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return net.ErrClosed
	}
	return err
}

func (web) Client(dial Dial, bytes int) (call, close func() error, err error) {
	t := &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		MaxConnsPerHost: 1,
	}
	client := http.Client{Transport: t}
	body := make([]byte, bytes)
	call = func() error {
		r, err := client.Post("http://service/", "application/octet-stream", &repeated{b: body})
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		if err == nil && (r.StatusCode != http.StatusOK || n != int64(bytes)) {
			err = fmt.Errorf("%s with %d bytes, want %d", r.Status, n, bytes)
		}
		return err
	}
	return call, func() error { t.CloseIdleConnections(); return nil }, call()
}

// repeated reads the same bytes once.
type repeated struct {
	b    []byte
	done int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.b[r.done:])
	if r.done += n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/paths"
)

// The management interface is HTTP with JSON over a unix socket beside the
// attach socket: GET /status, POST /adapter, POST /link. Only the user of the
// driver can open it.

// AdapterRequest enables or disables an adapter.
type AdapterRequest struct {
	Adapter string `json:"adapter"` // by name
	Enable  bool   `json:"enable"`
}

// LinkRequest sets what the link of an adapter does to packets, and the path
// that connections take. Nil leaves a setting as it is.
type LinkRequest struct {
	Adapter    string    `json:"adapter"`
	Impairment *[]string `json:"impairment,omitempty"` // as impair.Impairment.Parse reads them, on top of what is set
	Path       *string   `json:"path,omitempty"`       // auto, wire, local
}

// ErrNotRunning is a driver that does not answer.
var ErrNotRunning = errors.New("no driver is running")

const maxRequest = 1 << 16

func (d *Driver) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { answer(w, d.Status(), nil) })
	mux.HandleFunc("POST /adapter", func(w http.ResponseWriter, r *http.Request) {
		var q AdapterRequest
		err := readRequest(r, &q)
		if err == nil {
			err = d.SetAdapter(q)
		}
		answer(w, struct{}{}, err)
	})
	mux.HandleFunc("POST /link", func(w http.ResponseWriter, r *http.Request) {
		var q LinkRequest
		err := readRequest(r, &q)
		if err == nil {
			err = d.SetLink(q)
		}
		answer(w, struct{}{}, err)
	})
	mux.HandleFunc("GET /capture", d.serveCapture)
	mux.HandleFunc("DELETE /capture/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, struct{}{}, d.StopCapture(r.PathValue("id")))
	})
	return mux
}

func readRequest(r *http.Request, v any) error {
	d := json.NewDecoder(io.LimitReader(r.Body, maxRequest))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	return nil
}

func answer(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		r := refused{Error: err.Error()}
		errors.As(err, &r.Field)
		v = r
	}
	json.NewEncoder(w).Encode(v)
}

// refused is the answer to a request that failed.
type refused struct {
	Error string      `json:"error"`
	Field *FieldError `json:"field,omitempty"` // what of the request was wrong
}

// Admin talks to the management interface of a running driver.
type Admin struct {
	socket string
	client *http.Client
}

// NewAdmin returns the management interface of the driver whose attach socket
// is at socket; empty: the default.
func NewAdmin(socket string) *Admin {
	if socket == "" {
		socket = paths.Socket()
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", paths.Management(socket))
	}
	return &Admin{socket, &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 10 * time.Second}}
}

// Status asks for the state of the driver.
func (a *Admin) Status(ctx context.Context) (*Status, error) {
	var s Status
	if err := a.call(ctx, "GET", "/status", nil, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// SetAdapter enables or disables an adapter.
func (a *Admin) SetAdapter(ctx context.Context, q AdapterRequest) error {
	return a.call(ctx, "POST", "/adapter", q, nil)
}

// SetLink changes the link of an adapter.
func (a *Admin) SetLink(ctx context.Context, q LinkRequest) error {
	return a.call(ctx, "POST", "/link", q, nil)
}

func (a *Admin) call(ctx context.Context, method, path string, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://driver"+path, &body)
	if err != nil {
		return err
	}
	resp, err := a.client.Do(r)
	if err != nil {
		return a.explain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refusal(resp)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

// refusal is the error in an answer that is not OK.
func refusal(resp *http.Response) error {
	var e refused
	if json.NewDecoder(io.LimitReader(resp.Body, maxRequest)).Decode(&e) != nil || e.Error == "" {
		return fmt.Errorf("the driver answered %s", resp.Status)
	}
	if e.Field != nil {
		return e.Field
	}
	return errors.New(e.Error)
}

// explain tells a driver that is not there from other failures.
func (a *Admin) explain(err error) error {
	var op *net.OpError
	if errors.Is(err, os.ErrNotExist) || errors.As(err, &op) && strings.Contains(op.Error(), "connection refused") {
		return fmt.Errorf("%w at %s; start one with: softvpi up", ErrNotRunning, a.socket)
	}
	var u *url.Error
	if errors.As(err, &u) {
		return fmt.Errorf("driver at %s: %w", a.socket, u.Err)
	}
	return err
}

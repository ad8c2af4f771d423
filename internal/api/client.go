package api

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

	"github.com/softvpi/softvpi/internal/os/paths"
)

// maxAnswer limits how many bytes of an answer a client reads.
const maxAnswer = 256 << 20

// Client talks to the management interface of a running driver. Errors are ErrNotRunning, ErrNoManagement, ErrNotAllowed,
// *FieldError if a value was wrong, and others.
type Client struct {
	where string // for messages
	base  string
	http  *http.Client
	dial  func(context.Context) (net.Conn, error) // connects to a driver on this machine
}

const callTimeout = 30 * time.Second

// NewClient returns a client for the driver whose attach socket is at socket; empty: the default.
func NewClient(socket string) *Client {
	if socket == "" {
		socket = paths.Socket()
	}
	dial := func(ctx context.Context) (net.Conn, error) {
		if n := len(paths.Management(socket)); n >= paths.MaxSocket {
			return nil, fmt.Errorf("the path of the socket is %d bytes too long", n-paths.MaxSocket+1)
		}
		if err := paths.Own(socket); err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, "unix", paths.Management(socket))
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableKeepAlives: true}
	c := NewClientOver(socket, "http://driver", transport)
	c.dial = dial
	return c
}

// NewClientOver returns a client of the driver at a base URL, whose requests t carries. Messages say where that driver is.
func NewClientOver(where, base string, t http.RoundTripper) *Client {
	return &Client{where: where, base: base, http: &http.Client{Transport: t, Timeout: callTimeout}}
}

// Status asks for the state of the driver.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	var s Status
	if err := c.call(ctx, "GET", "/status", nil, nil, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// Get requests path and decodes the JSON answer into out, for requests without a method of their own.
func (c *Client) Get(ctx context.Context, path string, query url.Values, out any) error {
	return c.call(ctx, "GET", path, query, nil, out)
}

// Post sends in as JSON to path and decodes the answer into out, for requests without a method of their
// own.
func (c *Client) Post(ctx context.Context, path string, in, out any) error {
	return c.call(ctx, "POST", path, nil, in, out)
}

// stream asks for something that goes on, without a limit of time, and returns the header and the body, which
// the caller closes.
func (c *Client) stream(ctx context.Context, path string, query url.Values) (http.Header, io.ReadCloser, error) {
	endless := *c.http
	endless.Timeout = 0
	resp, err := c.send(ctx, &endless, "GET", path, query, nil)
	if err != nil {
		return nil, nil, err
	}
	return resp.Header, resp.Body, nil
}

// call sends a request with in as JSON and decodes the answer into out.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	var b io.Reader
	if raw, ok := in.([]byte); ok {
		b = bytes.NewReader(raw)
	} else if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		b = bytes.NewReader(text)
	}
	resp, err := c.send(ctx, c.http, method, path, query, b)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out); err != nil {
		return fmt.Errorf("driver at %s: %w", c.where, err)
	}
	return nil
}

// send sends a request and returns the answer unless it is an error.
func (c *Client) send(ctx context.Context, client *http.Client, method, path string, query url.Values, b io.Reader) (*http.Response,
	error) {
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, address, b)
	if err != nil {
		return nil, err
	}
	if b != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, c.explain(err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	var m problemDocument
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxProblem)).Decode(&m) // without a problem document there is no further detail
	return nil, understand(resp.StatusCode, &m)
}

// serves reports whether somebody takes programs at an attach socket.
func serves(socket string) bool {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// explain distinguishes a driver that is not running, or not to be managed from here, from other failures.
func (c *Client) explain(err error) error {
	if errors.Is(err, os.ErrNotExist) && c.dial != nil && serves(c.where) {
		return fmt.Errorf("%w: %s is that of a container or a virtual function; what was asked for is to be had where the driver runs, "+
			"at its own socket", ErrNoManagement, c.where)
	}
	var op *net.OpError
	if errors.Is(err, os.ErrNotExist) || errors.As(err, &op) && strings.Contains(op.Error(), "connection refused") {
		return fmt.Errorf("%w at %s; start one with: softvpi up", ErrNotRunning, c.where)
	}
	var u *url.Error
	if errors.As(err, &u) {
		return fmt.Errorf("driver at %s: %w", c.where, u.Err)
	}
	return err
}

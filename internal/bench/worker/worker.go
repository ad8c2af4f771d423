package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/verbs"
)

// Call is a request to a worker.
type Call struct {
	Method string          `json:"method"`
	Args   json.RawMessage `json:"args"`
}

// Answer is a worker's answer to a call.
type Answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// worker is the state of the program.
type worker struct {
	ctx  context.Context
	host *verbs.Host
	dev  *verbs.Device
	peer *endpoint
	tcp  tcpEnd
	nd   *nd.Adapter // for connections of package rdmanet
	mem  []byte      // that others copy to, or that is copied from

	serving []net.Listener
}

// Serve executes calls until in ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	w := &worker{ctx: ctx}
	d, e := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var c Call
		if err := d.Decode(&c); errors.Is(err, io.EOF) {
			return w.close()
		} else if err != nil {
			return errors.Join(err, w.close())
		}
		var a Answer
		result, err := w.do(c)
		if err == nil {
			a.Result, err = json.Marshal(result)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if err := e.Encode(a); err != nil {
			return errors.Join(err, w.close())
		}
	}
}

func (w *worker) close() error {
	var errs []error
	w.tcp.drop()
	w.release()
	for _, l := range w.serving {
		errs = append(errs, l.Close())
	}
	if w.peer != nil {
		errs = append(errs, w.peer.drop())
	}
	if w.host != nil {
		errs = append(errs, w.host.Close())
	}
	return errors.Join(errs...)
}

func (w *worker) do(c Call) (any, error) {
	if err := w.missing(c.Method); err != nil {
		return nil, err
	}
	switch c.Method {
	case "open":
		return decode(c, w.open)
	case "counters":
		return w.counters()
	case "tidy":
		debug.FreeOSMemory()
		return nil, nil
	case "churn":
		return decode(c, w.churn)
	case "endpoint":
		return decode(c, w.endpoint)
	case "listen":
		return w.peer.listen(w.ctx)
	case "connect":
		return decode(c, w.connect)
	case "accepted":
		return nil, <-w.peer.done
	case "write":
		return decode(c, w.write)
	case "ping":
		return decode(c, w.ping)
	case "pong":
		return decode(c, w.pong)
	case "drop":
		err := w.peer.drop()
		w.peer = nil
		return nil, err
	case "tcp room":
		return w.tcp.room(), nil
	case "tcp listen":
		return decode(c, w.tcp.listen)
	case "tcp connect":
		return decode(c, w.tcp.connect)
	case "tcp accepted":
		return nil, <-w.tcp.done
	case "tcp drop":
		w.tcp.drop()
		return nil, nil
	case "tcp ping":
		return decode(c, tcpPing)
	case "tcp pong":
		return decode(c, tcpPong)
	case "serve":
		return decode(c, w.serve)
	case "load":
		return decode(c, w.load)
	case "lend":
		return decode(c, w.lend)
	case "copy":
		return decode(c, w.copy)
	case "awake":
		return nil, keepAwake(w.ctx)
	}
	return nil, fmt.Errorf("no method %q", c.Method)
}

// missing says what a method needs that is not there.
func (w *worker) missing(method string) error {
	switch method {
	case "counters", "churn", "endpoint":
		if w.dev == nil {
			return fmt.Errorf("%s: no adapter is open", method)
		}
	case "listen", "connect", "write", "ping", "pong", "drop":
		if w.peer == nil {
			return fmt.Errorf("%s: there is no endpoint", method)
		}
	case "accepted":
		if w.peer == nil || w.peer.l == nil {
			return fmt.Errorf("%s: nobody listens", method)
		}
	case "tcp accepted":
		if w.tcp.done == nil {
			return fmt.Errorf("%s: nobody listens", method)
		}
	}
	return nil
}

// decode calls f with the arguments of a call.
func decode[A, R any](c Call, f func(A) (R, error)) (any, error) {
	var a A
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Method, err)
	}
	return f(a)
}

// OpenArgs say how a worker reaches its adapter.
type OpenArgs struct {
	Socket        string // of the driver; empty: the adapter is in the worker
	Addr          netip.Addr
	ReceiveBuffer int // in bytes; 0: the adapter's default
	UDPPort       uint16
}

func (w *worker) open(a OpenArgs) (struct{}, error) {
	var err error
	if a.Socket == "" {
		w.host, err = verbs.Embed(verbs.Config{Adapters: []verbs.AdapterConfig{{Addr: a.Addr, ReceiveBuffer: a.ReceiveBuffer,
			UDPPort: a.UDPPort}}})
	} else {
		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
		defer cancel()
		w.host, err = verbs.Attach(ctx, a.Socket)
	}
	if err == nil {
		w.dev, err = w.host.DeviceByAddr(a.Addr)
	}
	return struct{}{}, err
}

// counters returns the adapter's counters by name.
func (w *worker) counters() (map[string]uint64, error) {
	all, err := w.dev.Counters()
	m := make(map[string]uint64, len(all))
	for _, c := range all {
		m[c.Name] = c.Value
	}
	return m, err
}

// ChurnArgs request simultaneous queue pairs to be created and then destroyed.
type ChurnArgs struct {
	QPs   int
	Depth int // of the send and of the receive queue
}

// Churned is how long that took, in seconds.
type Churned struct{ Create, Destroy float64 }

func (w *worker) churn(a ChurnArgs) (c Churned, err error) {
	e, err := newEndpoint(w.dev, EndpointArgs{QPs: 1, Depth: a.Depth, Memory: 4096})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, e.drop()) }()
	all := make([]*verbs.QP, 0, a.QPs)
	start := time.Now()
	for n := range a.QPs {
		q, err := e.qp(n)
		if err != nil {
			return c, fmt.Errorf("queue pair %d: %w", n, err)
		}
		all = append(all, q)
	}
	c.Create = time.Since(start).Seconds()
	start = time.Now()
	for n, q := range all {
		if err := q.Close(); err != nil {
			return c, fmt.Errorf("destroy queue pair %d: %w", n, err)
		}
	}
	c.Destroy = time.Since(start).Seconds()
	return c, nil
}

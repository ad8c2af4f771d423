package worker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// peer is a worker that serves in this process.
type peer struct {
	t     testing.TB
	in    io.WriteCloser
	calls *json.Encoder
	out   *json.Decoder
}

func start(t *testing.T) *peer {
	in, calls := io.Pipe()
	answers, out := io.Pipe()
	served := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	go func() { served <- Serve(ctx, in, out); out.Close() }()
	t.Cleanup(func() {
		defer cancel()
		calls.Close()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return &peer{t, calls, json.NewEncoder(calls), json.NewDecoder(answers)}
}

func (p *peer) try(method string, args any) Answer {
	p.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		p.t.Fatal(err)
	}
	var a Answer
	if err := p.calls.Encode(Call{method, b}); err != nil {
		p.t.Fatal(err)
	}
	if err := p.out.Decode(&a); err != nil {
		p.t.Fatal(err)
	}
	return a
}

func (p *peer) call(method string, args, result any) {
	p.t.Helper()
	a := p.try(method, args)
	if a.Error != "" {
		p.t.Fatalf("%s: %s", method, a.Error)
	}
	if result != nil {
		if err := json.Unmarshal(a.Result, result); err != nil {
			p.t.Fatal(err)
		}
	}
}

// couple opens the adapters of two workers: attached to one driver if attached, and embedded otherwise.
func couple(t *testing.T, attached bool) (server, client *peer) {
	addrs := testbed.Addrs()
	socket := ""
	if attached {
		socket = testbed.Socket(t, addrs)
	}
	server, client = start(t), start(t)
	server.call("open", OpenArgs{Socket: socket, Addr: addrs[0]}, nil)
	client.call("open", OpenArgs{Socket: socket, Addr: addrs[1]}, nil)
	return server, client
}

func connect(server, client *peer, a EndpointArgs) {
	var at netip.AddrPort
	server.call("endpoint", a, nil)
	client.call("endpoint", a, nil)
	server.call("listen", nil, &at)
	client.call("connect", at, nil)
	server.call("accepted", nil, nil)
}

func TestManyConnectionsWriteAndGo(t *testing.T) {
	for _, attached := range []bool{false, true} {
		server, client := couple(t, attached)
		connect(server, client, EndpointArgs{QPs: 100, Depth: 2, Memory: 64 << 10})
		var w Written
		client.call("write", WriteArgs{QPs: 100, Size: 4096, Depth: 2, Seconds: 0.05}, &w)
		if !(w.Gbps > 0) || w.Least == 0 || w.Most < w.Least {
			t.Errorf("attached %v: %+v, want a rate and every connection's share of it", attached, w)
		}
		var c map[string]uint64
		server.call("counters", nil, &c)
		if c["RDMA Accepted Connections"] != 100 {
			t.Errorf("attached %v: %d connections accepted, want 100", attached, c["RDMA Accepted Connections"])
		}
		client.call("drop", nil, nil)
		server.call("drop", nil, nil)
		var x Churned
		client.call("churn", ChurnArgs{QPs: 200, Depth: 2}, &x)
		if !(x.Create > 0) || !(x.Destroy > 0) {
			t.Errorf("attached %v: %+v, want rates of creation and destruction", attached, x)
		}
	}
}

func TestMessagesGoToAndFro(t *testing.T) {
	for _, polling := range []bool{false, true} {
		server, client := couple(t, false)
		connect(server, client, EndpointArgs{QPs: 1, Depth: 16, Memory: 4096, Receive: true})
		ended := make(chan Answer, 1)
		a := PingArgs{Bytes: 8, Seconds: 0.05, Polling: polling}
		go func() { ended <- server.try("pong", a) }()
		var x Latency
		client.call("ping", a, &x)
		if !(x.Typical > 0) || x.P99 < x.Typical {
			t.Errorf("polling %v: %+v, want latencies above 0", polling, x)
		}
		if b := <-ended; b.Error != "" {
			t.Error(b.Error)
		}
	}
}

func TestTCPBesideIt(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the benchmark's TCP is for Linux")
	}
	addrs := testbed.Addrs()
	server, client := start(t), start(t)
	var at []netip.AddrPort
	server.call("tcp listen", TCPListenArgs{Addr: addrs[0], Connections: 100}, &at)
	var seconds float64
	client.call("tcp connect", TCPConnectArgs{Remote: at, Connections: 100}, &seconds)
	server.call("tcp accepted", nil, nil)
	client.call("tcp drop", nil, nil)
	server.call("tcp drop", nil, nil)
	if !(seconds > 0) {
		t.Errorf("%v seconds, want more than 0", seconds)
	}
	for _, polling := range []bool{false, true} {
		a := TCPPingArgs{PingArgs{Bytes: 8, Seconds: 0.02, Polling: polling}, netip.AddrPortFrom(addrs[0], 7005)}
		ended := make(chan Answer, 1)
		go func() { ended <- server.try("tcp pong", a) }()
		var x Latency
		client.call("tcp ping", a, &x)
		if b := <-ended; b.Error != "" || !(x.Typical > 0) {
			t.Errorf("polling %v: %+v, %s", polling, x, b.Error)
		}
	}
}

func TestRefusals(t *testing.T) {
	w := start(t)
	for method, want := range map[string]string{"nonsense": `no method "nonsense"`, "open": "open: json"} {
		if a := w.try(method, 5); !strings.Contains(a.Error, want) {
			t.Errorf("%s: error %q, want %q", method, a.Error, want)
		}
	}
	for _, method := range []string{"listen", "write", "ping", "pong", "drop", "churn", "counters", "accepted", "connect", "endpoint",
		"tcp accepted"} {
		if a := w.try(method, nil); a.Error == "" {
			t.Errorf("%s before anything is open gives no error", method)
		}
	}
}

func TestPairOfOneProcess(t *testing.T) {
	addrs := testbed.Addrs()
	for _, op := range PairOps {
		a := PairArgs{A: addrs[0], B: addrs[1], Op: op, MTU: 1024, Bytes: 8, Seconds: 0.02, Depth: 4, QPs: 2}
		r, err := Pair(t.Context(), a)
		if err != nil {
			t.Fatalf("%s: %v", op, err)
		}
		if latency := strings.HasSuffix(op, "-lat"); (r.Gbps > 0) == latency || (r.Typical > 0) != latency {
			t.Errorf("%s: %+v, want a rate or a latency", op, r)
		}
		if r.Counters["RDMA Outbound Frames/sec"] == 0 {
			t.Errorf("%s: no packet was sent", op)
		}
	}
	if _, err := Pair(t.Context(), PairArgs{A: addrs[0], B: addrs[1], Op: "nonsense", MTU: 1024, Bytes: 8, Depth: 1, QPs: 1}); err == nil {
		t.Error("an unknown operation gives no error")
	}
}

// A measurement gives up when nothing arrives in time, since only one end's queue is polled and the other end may
// have failed; it ends when its context does.
func TestPairWaitsOnlySoLong(t *testing.T) {
	addr := testbed.Addrs()[0]
	host, err := verbs.Embed(verbs.Config{Adapters: []verbs.AdapterConfig{{Addr: addr}}})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	dev, err := host.DeviceByAddr(addr)
	if err != nil {
		t.Fatal(err)
	}
	e, err := newEndpoint(dev, EndpointArgs{QPs: 1, Depth: 1, Memory: 64})
	if err != nil {
		t.Fatal(err)
	}
	c := &joined{ctx: t.Context(), patience: time.Millisecond}
	if err := c.until(&half{endpoint: e}, func() bool { return false }); err == nil {
		t.Error("until gives no error when nothing arrives")
	}
	c.patience = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.ctx = ctx
	if err := c.until(&half{endpoint: e}, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v, want %v", err, context.Canceled)
	}
	c.ctx = t.Context()
	polls := 0
	if err := c.until(&half{endpoint: e}, func() bool { polls++; return polls > pollsPerLook+1 }); err != nil {
		t.Error("until fails though it is done: ", err)
	}
}

package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/bench/worker"
)

type (
	pingArgs = worker.PingArgs
	latency  = worker.Latency
)

// peer is a worker in a process of its own, as seen from this one.
type peer struct {
	process *process
	in      io.WriteCloser
	calls   *json.Encoder
	answers *json.Decoder
	addr    netip.Addr
}

// worker starts a worker on a side of a path. Call end to stop it.
func (r *runner) worker(p *path, s side) (*peer, error) {
	x := r.command(p, s.placed(p.workers(r)))
	x.cmd.Stdout = nil
	in, err := x.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := x.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.begin(x); err != nil {
		return nil, err
	}
	addr, err := netip.ParseAddr(s.addr)
	return &peer{x, in, json.NewEncoder(in), json.NewDecoder(out), addr}, err
}

// workers returns the command that starts a worker.
func (p *path) workers(r *runner) []string {
	if len(p.worker) > 0 {
		return p.worker
	}
	return r.own("bench-worker")
}

// opened starts a worker and has it open the adapter of its side, in the driver if the path has one.
func (r *runner) opened(p *path, s side, buffer int) (*peer, error) {
	x, err := r.worker(p, s)
	if err != nil {
		return nil, err
	}
	if err := x.call("open", worker.OpenArgs{Socket: cmp.Or(s.socket, p.socket), Addr: x.addr, ReceiveBuffer: buffer, UDPPort: p.port},
		nil); err != nil {
		x.end()
		return nil, err
	}
	return x, nil
}

// couple starts a worker on each side and opens their adapters.
func (r *runner) couple(p *path, buffer int) (server, client *peer, err error) {
	if server, err = r.opened(p, p.server, buffer); err != nil {
		return nil, nil, err
	}
	if client, err = r.opened(p, p.client, buffer); err != nil {
		server.end()
		return nil, nil, err
	}
	return server, client, nil
}

// call makes the worker do something and waits until it is done.
func (x *peer) call(method string, args, result any) error {
	b, err := json.Marshal(args)
	if err != nil {
		return err
	}
	if err := x.calls.Encode(worker.Call{Method: method, Args: b}); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	var a worker.Answer
	if err := x.answers.Decode(&a); err != nil {
		return fmt.Errorf("%s: the worker is gone: %w: %s", method, err, x.process.err.String())
	}
	if a.Error != "" {
		return fmt.Errorf("%s: %s", method, a.Error)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(a.Result, result)
}

// begin is call for what runs while others are called; the channel returns its error.
func (x *peer) begin(method string, args, result any) <-chan error {
	done := make(chan error, 1)
	go func() { done <- x.call(method, args, result) }()
	return done
}

// end lets the worker finish, and kills it if it does not.
func (x *peer) end() {
	x.in.Close()
	late := time.AfterFunc(20*time.Second, x.kill)
	defer late.Stop()
	_ = x.process.cmd.Wait() // all requests have been answered
}

// kill kills a worker that would not end by itself.
func (x *peer) kill() { _ = x.process.cmd.Process.Kill() }

func (x *peer) pid() string { return strconv.Itoa(x.process.cmd.Process.Pid) }

// connect connects an endpoint of both workers as often as it says and returns the seconds that took.
func connect(server, client *peer, a worker.EndpointArgs) (seconds float64, err error) {
	for _, x := range []*peer{server, client} {
		if err := x.call("endpoint", a, nil); err != nil {
			return 0, err
		}
	}
	var at netip.AddrPort
	if err := server.call("listen", nil, &at); err != nil {
		return 0, err
	}
	if err := client.call("connect", at, &seconds); err != nil {
		return 0, err
	}
	return seconds, server.call("accepted", nil, nil)
}

// messages measures a ping-pong between two workers of a path.
func (r *runner) messages(p *path, a pingArgs) (latency, error) {
	server, client, err := r.couple(p.polling(), 0)
	if err != nil {
		return latency{}, err
	}
	defer server.end()
	defer client.end()
	return play(server, client, a, a)
}

// play connects two workers and measures a ping-pong between them.
func play(server, client *peer, theirs, ours pingArgs) (x latency, err error) {
	if _, err := connect(server, client, worker.EndpointArgs{QPs: 1, Depth: 16, Memory: 4096, Receive: true}); err != nil {
		return x, err
	}
	answering := server.begin("pong", theirs, nil)
	if err := client.call("ping", ours, &x); err != nil {
		server.kill() // it waits for a message that will not arrive
		return x, err
	}
	return x, <-answering
}

// tcpPing measures the same over TCP.
func (r *runner) tcpPing(p *path, a pingArgs) (x latency, err error) {
	p = p.polling()
	server, err := r.worker(p, p.server)
	if err != nil {
		return x, err
	}
	defer server.end()
	client, err := r.worker(p, p.client)
	if err != nil {
		return x, err
	}
	defer client.end()
	args := worker.TCPPingArgs{PingArgs: a, Addr: netip.AddrPortFrom(server.addr, 7005)}
	answering := server.begin("tcp pong", args, nil)
	if err := client.call("tcp ping", args, &x); err != nil {
		server.kill()
		return x, err
	}
	return x, <-answering
}

// keepAwake keeps the processors from sleeping until stop.
func (r *runner) keepAwake() (stop func(), err error) {
	x, err := r.worker(&path{}, side{addr: "127.0.0.1"})
	if err != nil {
		return nil, err
	}
	stop = func() {
		x.kill()
		x.end()
	}
	if err := x.call("awake", nil, nil); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

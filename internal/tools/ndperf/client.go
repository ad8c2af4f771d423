package ndperf

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/tools/session"
	"github.com/softvpi/softvpi/nd"
)

// client runs the test against a server. It calls connected when the server is ready, and row with every
// size's result. When stop ends, the run ends with the results so far.
func (t Test) client(stop context.Context, o *options, s *session.Session, p *progress, connected func(), row func(Result)) (err error) {
	ctx, cancel := grace(stop)
	defer cancel()
	e, err := newEndpoint(ctx, t, s, o.QPs, o.Depth)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	e.ownMemory = o.OwnMemory
	sizes := o.sizes()
	if err := e.allocate(ctx, sizes[len(sizes)-1], o.Cycle); err != nil {
		return err
	}
	e.stop = stop
	remote, err := e.connect(stop, o)
	if err != nil {
		return err
	}
	connected()
	r := newReceiver(e, o.Depth)
	for _, bytes := range sizes {
		x, err := e.round(ctx, o, bytes, remote, r, p)
		p.erase()
		if err != nil {
			return fmt.Errorf("%d bytes: %w", bytes, err)
		}
		row(x)
		if stop.Err() != nil {
			break
		}
	}
	if err := e.tell(ctx, &message{Type: "bye"}); err != nil {
		return err
	}
	for e.sending {
		if err := e.wait(ctx, nil); err != nil {
			return err
		}
	}
	return e.disconnect(ctx)
}

// grace returns a context that ends a little later than ctx, so that work in progress can be finished.
func grace(ctx context.Context) (context.Context, context.CancelFunc) {
	const long = 2 * time.Second
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() { time.AfterFunc(long, cancel) })
	return late, func() { forget(); cancel() }
}

// connect sets up the control connection, agrees on the parameters and sets up the data connections. It
// returns the server's memory.
func (e *endpoint) connect(ctx context.Context, o *options) (*buffer, error) {
	server := netip.AddrPortFrom(o.Addr, o.Port)
	id := hello{test: e.test, session: rand.Uint64()}
	var err error
	if e.control, err = e.newLink(controlDepth, 0); err != nil {
		return nil, err
	}
	if err := e.postControlReceives(); err != nil {
		return nil, err
	}
	if err := e.control.dial(ctx, server, id); err != nil {
		return nil, err
	}
	e.probe = session.StartProbe(e.control.qp, requestContext(kindProbe, 0, 0))
	ask := message{Type: "params", Buffer: e.buffer(), Params: &params{
		QPs: o.QPs, Depth: o.Depth, MaxSize: e.maxSize, Cycle: e.set, Inline: o.Inline, Sizes: o.words(),
	}}
	if err := e.tell(ctx, &ask); err != nil {
		return nil, err
	}
	ready, err := e.hear(ctx, "ready")
	if err != nil {
		return nil, err
	}
	if ready.Buffer.Length < uint64(len(e.mem)) {
		return nil, fmt.Errorf("the server offers %d bytes of memory; the test needs %d", ready.Buffer.Length, len(e.mem))
	}
	for range o.QPs {
		l, err := e.newLink(o.Depth, o.Inline)
		if err != nil {
			return nil, err
		}
		e.data = append(e.data, l)
		id.index = uint32(len(e.data))
		if err := l.dial(ctx, server, id); err != nil {
			return nil, err
		}
	}
	return ready.Buffer, nil
}

// dial connects a link to the server.
func (l *link) dial(ctx context.Context, server netip.AddrPort, id hello) error {
	p := nd.ConnectParams{InboundReadLimit: readLimit, OutboundReadLimit: readLimit, PrivateData: id.encode()}
	if err := l.connector.Connect(ctx, l.qp, server, p); err != nil {
		return session.ExplainReject(err)
	}
	return l.connector.CompleteConnect(ctx)
}

// readLimit is how many reads may be outstanding on a connection; the adapter lowers it to what it
// supports.
const readLimit = 128

// round runs one message size.
func (e *endpoint) round(ctx context.Context, o *options, bytes int, remote *buffer, r *receiver, p *progress) (Result, error) {
	e.clear()
	if e.test == (Test{Send, Latency}) {
		if err := r.begin(bytes); err != nil {
			return Result{}, err
		}
	}
	if err := e.tell(ctx, &message{Type: "begin", Round: &round{Bytes: bytes, Iterations: o.Iterations * int64(o.QPs)}}); err != nil {
		return Result{}, err
	}
	if _, err := e.hear(ctx, "go"); err != nil {
		return Result{}, err
	}
	var mine Row
	var err error
	if e.test.Measure == Latency {
		mine, err = e.latencyClient(ctx, o, bytes, remote, r, p)
	} else {
		mine, err = e.bandwidthClient(ctx, o, bytes, remote, p)
	}
	if err != nil {
		return Result{}, err
	}
	if err := e.tell(ctx, &message{Type: "end", Round: &round{Bytes: bytes, Iterations: mine.Iterations}, Row: &mine}); err != nil {
		return Result{}, err
	}
	m, err := e.hear(ctx, "result")
	if err != nil {
		return Result{}, err
	}
	return Result{Bytes: bytes, Client: mine, Server: *m.Row}, nil
}

// words returns, as options, what the client was asked to run.
func (o *options) words() string {
	s := fmt.Sprintf("-s %d", o.Size)
	if o.All {
		s = "-a"
	}
	if o.Duration > 0 {
		s += fmt.Sprintf(" -D %g -q %d", o.Duration.Seconds(), o.QPs)
	} else {
		s += fmt.Sprintf(" -n %d -q %d", o.Iterations, o.QPs)
	}
	if o.Cycle != 0 && o.Cycle != defaultCycle {
		s += fmt.Sprintf(" --cycle %d", o.Cycle)
	}
	return s
}

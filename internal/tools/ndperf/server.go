package ndperf

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/tools/session"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/nd"
)

// server waits for one client and runs the test with it. Listening is called
// once clients can connect, row with every size's result; it returns the
// client's address.
func (t Test) server(ctx context.Context, o *options, s *session.Session, listening func(), note func(string),
	row func(Result)) (client netip.Addr, err error) {
	l, err := s.Adapter.CreateListener()
	if err != nil {
		return client, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := l.Bind(netip.AddrPortFrom(o.Addr, o.Port)); err != nil {
		return client, err
	}
	if err := l.Listen(backlog); err != nil {
		return client, err
	}
	listening()
	id, c, err := t.request(ctx, s.Adapter, l, nil)
	if err != nil {
		return client, err
	}
	v := &serving{test: t, session: s, listener: l, id: id}
	err = v.run(ctx, c, o, note, row)
	return v.client, err
}

const backlog = 256

// serving is a server with its client.
type serving struct {
	test     Test
	session  *session.Session
	listener *nd.Listener
	id       hello
	client   netip.Addr
}

// request waits for a connection request of the test and session, of any
// session where that is nil, and refuses all others with a reason.
func (t Test) request(ctx context.Context, a *nd.Adapter, l *nd.Listener, want *hello) (hello, *nd.Connector, error) {
	for {
		c, err := a.CreateConnector()
		if err != nil {
			return hello{}, nil, err
		}
		if err := l.GetConnectionRequest(ctx, c); err != nil {
			if want == nil && ctx.Err() != nil {
				err = tool.ErrIdle
			}
			return hello{}, nil, errors.Join(err, c.Close())
		}
		private, err := c.GetPrivateData()
		var id hello
		if err == nil {
			id, err = decodeHello(private)
		}
		switch {
		case err != nil:
		case id.test != t:
			err = fmt.Errorf("the server runs %s, the client %s", t.Name(), id.test.Name())
		case want == nil && id.index != 0:
			err = errors.New("the session of this connection has ended")
		case want != nil && id.session != want.session:
			err = errors.New("the server is busy with another client")
		case want != nil && id.index != want.index:
			err = fmt.Errorf("connection %d arrived where %d was expected", id.index, want.index)
		default:
			return id, c, nil
		}
		reason := err.Error()
		_ = c.Reject([]byte(reason[:min(len(reason), nd.MaxCalleeData)])) // a client that is gone needs no answer
		_ = c.Close()
	}
}

func (v *serving) run(ctx context.Context, c *nd.Connector, o *options, note func(string), row func(Result)) (err error) {
	if peer, err := c.GetPeerAddress(); err == nil {
		v.client = peer.Addr()
	}
	e, err := v.meet(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	e.ownMemory = o.OwnMemory
	ask, err := e.hear(ctx, "params")
	if err != nil {
		return err
	}
	if mine := o.asked(); mine != "" && mine != ask.Params.Sizes {
		note(fmt.Sprintf("the client asks for %s; that is run instead of %s", ask.Params.Sizes, mine))
	}
	if err := v.ready(ctx, e, ask.Params); err != nil {
		tellError(ctx, e, err)
		return err
	}
	if e.test.Measure == Latency && ask.Buffer.Length < uint64(len(e.mem)) {
		return fmt.Errorf("the client offers %d bytes of memory; the test needs %d", ask.Buffer.Length, len(e.mem))
	}
	r := newReceiver(e, ask.Params.Depth)
	for {
		more, err := e.serve(ctx, ask, r, row)
		if err != nil {
			return err
		}
		if !more {
			return e.awaitDisconnect(ctx)
		}
	}
}

// meet accepts the control connection. The completion queue is grown when the
// client has said what it needs.
func (v *serving) meet(ctx context.Context, c *nd.Connector) (e *endpoint, err error) {
	if e, err = newEndpoint(ctx, v.test, v.session, 1, 1); err != nil {
		_ = c.Reject([]byte("the server has no resources"))
		return nil, errors.Join(err, c.Close())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if e.control, err = e.acceptedLink(c, controlDepth, 0); err != nil {
		return e, err
	}
	if err := e.postControlReceives(); err != nil {
		return e, err
	}
	if err = e.control.accept(ctx, v.id); err == nil {
		e.probe = session.StartProbe(e.control.qp, requestContext(kindProbe, 0, 0))
	}
	return e, err
}

// acceptedLink makes the queue pair for a connection request.
func (e *endpoint) acceptedLink(c *nd.Connector, depth, inline int) (*link, error) {
	l, err := e.newLink(depth, inline)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	err = l.connector.Close()
	l.connector = c
	return l, err
}

func (l *link) accept(ctx context.Context, id hello) error {
	return l.connector.Accept(ctx, l.qp, nd.ConnectParams{InboundReadLimit: readLimit, OutboundReadLimit: readLimit,
		PrivateData: id.encode()})
}

// ready makes what the client's parameters need, says so and accepts the
// connections of the data.
func (v *serving) ready(ctx context.Context, e *endpoint, p *params) error {
	if err := e.cq.Resize(cqDepth(p.QPs, p.Depth)); err != nil {
		return err
	}
	if err := e.allocate(ctx, p.MaxSize, p.Cycle); err != nil {
		return err
	}
	if err := e.tell(ctx, &message{Type: "ready", Buffer: e.buffer()}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout)
	defer cancel()
	gone := e.untilGone(ctx, cancel)
	for i := range p.QPs {
		want := v.id
		want.index = uint32(i + 1)
		id, c, err := v.test.request(ctx, v.session.Adapter, v.listener, &want)
		if gone.Load() {
			return e.failed(&nd.Result{Status: nd.StatusCanceled})
		}
		if err != nil {
			return err
		}
		l, err := e.acceptedLink(c, p.Depth, p.Inline)
		if err != nil {
			return err
		}
		e.data = append(e.data, l)
		if err := l.accept(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// untilGone cancels what waits for more connections when the client ends the
// control connection.
func (e *endpoint) untilGone(ctx context.Context, cancel context.CancelFunc) *atomic.Bool {
	gone := new(atomic.Bool)
	go func() {
		if e.control.connector.NotifyDisconnect(ctx) == nil {
			gone.Store(true)
			cancel()
		}
	}()
	return gone
}

// serve runs one message size; false: the client is done.
func (e *endpoint) serve(ctx context.Context, ask *message, r *receiver, row func(Result)) (more bool, err error) {
	for len(e.inbox) == 0 {
		if err := e.wait(ctx, nil); err != nil {
			return false, err
		}
	}
	m, err := decodeMessage(e.inbox[0])
	if err != nil {
		return false, err
	}
	e.inbox = e.inbox[1:]
	if m.Type == "bye" {
		return false, nil
	}
	if err := m.want("begin"); err != nil {
		return false, err
	}
	bytes := m.Round.Bytes
	if bytes > e.maxSize {
		return false, fmt.Errorf("the client begins with %d bytes; it announced up to %d", bytes, e.maxSize)
	}
	e.clear()
	if e.test.Verb == Send {
		if err := r.begin(bytes); err != nil {
			return false, err
		}
	}
	if err := e.tell(ctx, &message{Type: "go"}); err != nil {
		return false, err
	}
	var mine Row
	var end *message
	if e.test.Measure == Latency {
		mine, end, err = e.latencyServer(ctx, ask.Params.Inline, bytes, ask.Buffer, r)
	} else {
		mine, end, err = e.bandwidthServer(ctx, bytes, r)
	}
	if err != nil {
		return false, err
	}
	if err := e.tell(ctx, &message{Type: "result", Row: &mine}); err != nil {
		return false, err
	}
	row(Result{Bytes: bytes, Client: *end.Row, Server: mine})
	return true, nil
}

// tellError tells the client why the server gives up, where that is possible.
func tellError(ctx context.Context, e *endpoint, err error) {
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout)
	defer cancel()
	text := err.Error()
	if e.tell(ctx, &message{Type: "error", Error: text[:min(len(text), 512)]}) != nil {
		return
	}
	for e.sending {
		if e.wait(ctx, nil) != nil {
			return
		}
	}
}

// asked says in the form of options what a server was asked to run; empty where
// it leaves that to the client.
func (o *options) asked() string {
	for _, name := range []string{"s", "a", "n", "D", "q", "cycle"} {
		if o.given != nil && o.given(name) {
			return o.words()
		}
	}
	return ""
}

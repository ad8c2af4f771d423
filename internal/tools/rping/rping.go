// Package rping is nd_rping, the RDMA ping of the WinOF manual (4.8.2), which speaks the protocol of rping
// on Linux: the client says where its source buffer is, the server reads it and says go ahead; the client
// says where its sink is, the server writes the data back and says go ahead.
package rping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/tools/session"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/nd"
)

// Main runs nd_rping.
func Main(ctx context.Context, env tool.Env) int {
	o, status, done := parse(env)
	if done {
		return status
	}
	p := &pinger{options: o, env: env}
	var err error
	if o.server {
		err = p.serve(ctx)
	} else {
		err = p.client(ctx)
	}
	return env.End(ctx, err)
}

// pinger is a run of the tool.
type pinger struct {
	options
	env tool.Env
	mu  sync.Mutex // of the output
}

// printf prints one complete line, even if others print at the same time.
func (p *pinger) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.env.Stdout, format+"\n", args...)
}

func (p *pinger) debugf(format string, args ...any) {
	if p.debug {
		p.printf(format, args...)
	}
}

const (
	depth = 4
	// The layout of a connection's memory: two message buffers, then the data.
	receiveAt = 0
	sendAt    = infoSize
	dataAt    = 2 * infoSize
	// room is enough for the largest ping; the client has two, its source and its sink.
	room = maxSize + 1
)

func config() session.Config {
	return session.Config{Depth: depth, Memory: dataAt + 2*room, Prepare: postReceive}
}

// Request contexts.
const (
	received = iota + 1
	sent
	moved
)

func postReceive(c *session.Connection) error {
	return c.QP.Receive(received, []nd.SGE{c.MR.SGE(receiveAt, infoSize)})
}

// peer is a connection with the protocol's two messages.
type peer struct {
	*session.Connection
	message info
	came    bool // a message has arrived that was not awaited yet
}

// await waits for a result of the given kind. It keeps a message that arrives meanwhile.
func (c *peer) await(ctx context.Context, kind uint64) error {
	for {
		if kind == received && c.came {
			c.came = false
			return nil
		}
		r, err := c.Next(ctx)
		if err != nil {
			return err
		}
		if r.RequestContext == received {
			if c.message, err = parseInfo(c.Memory[receiveAt:][:r.BytesTransferred]); err != nil {
				return err
			}
			c.came = true
			if err := postReceive(c.Connection); err != nil {
				return err
			}
		}
		if r.RequestContext == kind && kind != received {
			return nil
		}
	}
}

// tell sends a message and waits until it is delivered.
func (c *peer) tell(ctx context.Context, i info) error {
	i.put(c.Memory[sendAt:])
	if err := c.QP.Send(sent, []nd.SGE{c.MR.SGE(sendAt, infoSize)}, 0); err != nil {
		return err
	}
	return c.await(ctx, sent)
}

// client pings the server.
func (p *pinger) client(ctx context.Context) (err error) {
	server := netip.AddrPortFrom(p.addr, p.port)
	s, err := session.Dial(ctx, p.mode, server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p.debugf("connecting %v to %v, %s (%s)", s.Local, server, s.Name(), s.Mode())
	conn, err := s.Dial(ctx, server, config())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	p.debugf("connected")
	c := &peer{Connection: conn}
	for n := 0; p.count == 0 || n < p.count; n++ {
		if err := p.ping(ctx, c, n); err != nil {
			if ctx.Err() != nil && p.count == 0 {
				break // stopped by the user, who gave no number of pings
			}
			return fmt.Errorf("ping %d: %w", n, err)
		}
	}
	p.debugf("disconnecting")
	return conn.Disconnect(context.WithoutCancel(ctx))
}

// ping performs one cycle.
func (p *pinger) ping(ctx context.Context, c *peer, n int) error {
	source, sink := c.Memory[dataAt:][:p.size], c.Memory[dataAt+room:][:p.size]
	pattern(source, n)
	clear(sink)
	at := func(offset int) info {
		return info{c.MR.Address() + uint64(dataAt+offset), c.MR.GetRemoteToken(), uint32(p.size)}
	}
	p.debugf("ping %d: telling the source, %d bytes", n, p.size)
	if err := c.tell(ctx, at(0)); err != nil {
		return err
	}
	if err := c.await(ctx, received); err != nil {
		return err
	}
	p.debugf("ping %d: the server has read it; telling the sink", n)
	if err := c.tell(ctx, at(room)); err != nil {
		return err
	}
	if err := c.await(ctx, received); err != nil {
		return err
	}
	p.debugf("ping %d: the server has written it back", n)
	if p.validate && !bytes.Equal(source, sink) {
		return errors.New("data mismatch: what came back is not what was sent")
	}
	if p.verbose {
		p.printf("ping data: %s", text(sink))
	}
	return nil
}

// serve answers clients: one, or with -P any number at a time.
func (p *pinger) serve(ctx context.Context) (err error) {
	places, err := p.listen(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	ended := make(chan error, len(places))
	for _, at := range places {
		wg.Go(func() {
			ended <- p.answer(ctx, at)
			if !p.persistent {
				cancel() // one client has been served: the other listeners end too
			}
		})
	}
	first := <-ended
	if p.persistent || first == nil {
		wg.Wait()
	}
	cancel()
	wg.Wait()
	var errs []error
	for _, at := range places {
		errs = append(errs, at.listener.Close())
	}
	errs = append(errs, closeSessions(places))
	return errors.Join(append([]error{first}, errs...)...)
}

// place is a listener with its adapter.
type place struct {
	session  *session.Session
	listener *nd.Listener
}

func closeSessions(places []place) error {
	var errs []error
	for _, at := range places {
		errs = append(errs, at.session.Close())
	}
	return errors.Join(errs...)
}

// listen opens the listener at the address, or one on each adapter.
func (p *pinger) listen(ctx context.Context) (places []place, err error) {
	addrs := []netip.Addr{p.addr}
	if !p.addr.IsValid() {
		if addrs, err = session.Addresses(ctx, p.mode); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeSessions(places))
			places = nil
		}
	}()
	for _, a := range addrs {
		s, err := session.Serve(ctx, p.mode, a)
		if err != nil {
			return places, err
		}
		l, err := s.Listen(netip.AddrPortFrom(a, p.port))
		if err != nil {
			return append(places, place{session: s}), err
		}
		places = append(places, place{s, l})
		p.printf("listening at %v, %s (%s)", netip.AddrPortFrom(a, p.port), s.Name(), s.Mode())
	}
	return places, nil
}

// answer serves the clients of one listener.
func (p *pinger) answer(ctx context.Context, at place) error {
	if !p.persistent {
		request, err := at.session.Request(ctx, at.listener)
		if err != nil {
			return err
		}
		return p.connection(ctx, at, request)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		request, err := at.session.Request(ctx, at.listener)
		if err != nil {
			return err
		}
		wg.Go(func() {
			if err := p.connection(ctx, at, request); err != nil && ctx.Err() == nil {
				p.env.Errorf("%v", err) // a failure of one client does not affect the others
			}
		})
	}
}

// connection serves one client until it disconnects or -C pings are done.
func (p *pinger) connection(ctx context.Context, at place, request *nd.Connector) (err error) {
	who := "a client"
	if a, err := request.GetPeerAddress(); err == nil {
		who = a.String()
	}
	conn, err := at.session.Accept(ctx, request, config())
	if err != nil {
		return fmt.Errorf("%s: %w", who, err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	p.debugf("accepted %s", who)
	c := &peer{Connection: conn}
	n := 0
	for ; p.count == 0 || n < p.count; n++ {
		if err := p.pong(ctx, c); errors.Is(err, session.ErrEnded) {
			p.debugf("%s has disconnected after %d pings", who, n)
			return nil
		} else if ctx.Err() != nil && p.count == 0 {
			return nil // stopped by the user, who gave no number of pings
		} else if err != nil {
			return fmt.Errorf("%s: ping %d: %w", who, n, err)
		}
	}
	// The client has its last answer; it disconnects, or is disconnected.
	wait, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := conn.Connector.NotifyDisconnect(wait); err == nil {
		return nil
	}
	return conn.Disconnect(ctx)
}

// pong answers one ping.
func (p *pinger) pong(ctx context.Context, c *peer) error {
	if err := c.await(ctx, received); err != nil {
		return err
	}
	source := c.message
	if source.size == 0 || source.size > uint32(p.limit) {
		return fmt.Errorf("the client's ping has %d bytes; allowed: 1 to %d", source.size, p.limit)
	}
	p.debugf("reading %d bytes at %#x under token %#x", source.size, source.address, source.token)
	data := c.Memory[dataAt:][:source.size]
	if err := c.QP.Read(moved, []nd.SGE{c.MR.SGE(dataAt, len(data))}, source.address, source.token, 0); err != nil {
		return err
	}
	if err := c.await(ctx, moved); err != nil {
		return err
	}
	if p.validate {
		if err := checkPattern(data); err != nil {
			return err
		}
	}
	if p.verbose {
		p.printf("server ping data: %s", text(data))
	}
	if err := c.tell(ctx, info{}); err != nil {
		return err
	}
	if err := c.await(ctx, received); err != nil {
		return err
	}
	sink := c.message
	back := min(len(text(data))+1, len(data)) // including its zero byte, like rping
	if sink.size < uint32(back) {
		return fmt.Errorf("the client's sink has %d bytes; %d would be sent back", sink.size, back)
	}
	p.debugf("writing %d bytes to %#x under token %#x", back, sink.address, sink.token)
	if err := c.QP.Write(moved, []nd.SGE{c.MR.SGE(dataAt, back)}, sink.address, sink.token, 0); err != nil {
		return err
	}
	if err := c.await(ctx, moved); err != nil {
		return err
	}
	if err := c.tell(ctx, info{}); !errors.Is(err, session.ErrEnded) {
		return err
	}
	return nil // the client has its answer and left before its acknowledgement was seen
}

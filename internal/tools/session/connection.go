package session

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/verbs"
)

// Config configures a connection.
type Config struct {
	Depth  int // of the send and the receive queue
	SGE    int // entries per request; 0: 1
	Memory int // bytes of registered memory that the peer may read and write
	// Hello returns the private data for the peer, once the memory exists; nil: none.
	Hello func(*Connection) []byte
	// Prepare is called when the queue pair exists but is not connected yet: the place to post receives.
	Prepare func(*Connection) error
}

// Connection is a connected queue pair with its completion queue and memory.
type Connection struct {
	QP        *nd.QueuePair
	CQ        *nd.CompletionQueue
	Connector *nd.Connector
	MR        *nd.MemoryRegion
	Memory    []byte

	results [1]nd.Result
	looks   int
	probe   *Probe
}

// readLimit is how many reads may be outstanding; the adapter lowers it to what it supports.
const readLimit = 128

// Listen listens for connections at the address; use Request and Accept.
func (s *Session) Listen(at netip.AddrPort) (*nd.Listener, error) {
	const backlog = 64
	l, err := s.Adapter.CreateListener()
	if err != nil {
		return nil, err
	}
	if err = l.Bind(at); err == nil {
		err = l.Listen(backlog)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Request waits for the next connection request, to be answered by Accept or Reject. The error is
// tool.ErrIdle if ctx ends.
func (s *Session) Request(ctx context.Context, l *nd.Listener) (*nd.Connector, error) {
	c, err := s.Adapter.CreateConnector()
	if err != nil {
		return nil, err
	}
	if err := l.GetConnectionRequest(ctx, c); err != nil {
		if ctx.Err() != nil {
			err = tool.ErrIdle
		}
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Accept accepts a connection request with a new queue pair.
func (s *Session) Accept(ctx context.Context, request *nd.Connector, cfg Config) (*Connection, error) {
	c := &Connection{Connector: request}
	err := c.prepare(ctx, s, cfg)
	if err == nil {
		err = request.Accept(ctx, c.QP, nd.ConnectParams{InboundReadLimit: readLimit, OutboundReadLimit: readLimit,
			PrivateData: c.hello(cfg)})
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.probe = StartProbe(c.QP, probeContext)
	return c, nil
}

// Dial connects a new queue pair to a listener.
func (s *Session) Dial(ctx context.Context, remote netip.AddrPort, cfg Config) (*Connection, error) {
	connector, err := s.Adapter.CreateConnector()
	if err != nil {
		return nil, err
	}
	c := &Connection{Connector: connector}
	if err = c.prepare(ctx, s, cfg); err == nil {
		err = c.dial(ctx, remote, c.hello(cfg))
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.probe = StartProbe(c.QP, probeContext)
	return c, nil
}

func (c *Connection) hello(cfg Config) []byte {
	if cfg.Hello == nil {
		return nil
	}
	return cfg.Hello(c)
}

func (c *Connection) dial(ctx context.Context, remote netip.AddrPort, private []byte) error {
	p := nd.ConnectParams{InboundReadLimit: readLimit, OutboundReadLimit: readLimit, PrivateData: private}
	if err := c.Connector.Connect(ctx, c.QP, remote, p); err != nil {
		return ExplainReject(err)
	}
	return c.Connector.CompleteConnect(ctx)
}

// ExplainReject adds the reason given by a listener that refused to the error.
func ExplainReject(err error) error {
	var refused *verbs.RejectedError
	if !errors.As(err, &refused) {
		return err
	}
	if text := strings.TrimRight(string(refused.Private), "\x00"); text != "" {
		return fmt.Errorf("%w: %q", err, text)
	}
	return err
}

func (c *Connection) prepare(ctx context.Context, s *Session, cfg Config) (err error) {
	if c.CQ, err = s.Adapter.CreateCompletionQueue(2*cfg.Depth + 3); err != nil {
		return err
	}
	if c.MR, err = s.Adapter.CreateMemoryRegion(); err != nil {
		return err
	}
	if err := c.MR.Allocate(ctx, cfg.Memory, nd.MRFlagAllowLocalWrite|nd.MRFlagAllowRemoteRead|nd.MRFlagAllowRemoteWrite|
		nd.MRFlagRDMAReadSink); err != nil {
		return err
	}
	c.Memory = c.MR.Buffer()
	c.QP, err = s.Adapter.CreateQueuePair(nd.QueuePairConfig{
		// one for the probe
		ReceiveCompletionQueue: c.CQ, InitiatorCompletionQueue: c.CQ, ReceiveQueueDepth: cfg.Depth, InitiatorQueueDepth: cfg.Depth + 1,
		MaxReceiveRequestSGE: cfg.SGE, MaxInitiatorRequestSGE: cfg.SGE,
	})
	if err != nil || cfg.Prepare == nil {
		return err
	}
	return cfg.Prepare(c)
}

// Next waits for one result. A failed request is an error; a canceled one means that the connection has
// ended.
func (c *Connection) Next(ctx context.Context) (nd.Result, error) {
	for ctx.Err() == nil { // results may arrive faster than they are taken
		if _, err := c.CQ.WaitResults(ctx, c.results[:]); err != nil {
			return nd.Result{}, err
		}
		if !c.probed() {
			return c.check()
		}
	}
	return nd.Result{}, ctx.Err()
}

// probed handles the result of a successful probe.
func (c *Connection) probed() bool {
	if c.results[0].RequestContext != probeContext || c.results[0].Status != nd.StatusSuccess {
		return false
	}
	c.probe.Answered()
	return true
}

// Poll is Next without sleeping.
func (c *Connection) Poll(ctx context.Context) (nd.Result, error) {
	for {
		if r, n, err := c.Look(ctx); n > 0 || err != nil {
			return r, err
		}
	}
}

// Look returns a result if there is one; otherwise n is 0.
func (c *Connection) Look(ctx context.Context) (r nd.Result, n int, err error) {
	if n, err = c.CQ.GetResults(c.results[:]); err != nil {
		return r, 0, err
	}
	if n == 1 && c.probed() {
		n = 0
	}
	if n == 0 {
		if c.looks++; c.looks%1024 == 0 {
			err = ctx.Err()
		}
		return r, 0, err
	}
	r, err = c.check()
	return r, n, err
}

// ErrEnded says that the peer has ended the connection.
var ErrEnded = errors.New("the connection ended")

func (c *Connection) check() (nd.Result, error) {
	r := c.results[0]
	switch r.Status {
	case nd.StatusSuccess:
		return r, nil
	case nd.StatusCanceled:
		return r, ErrEnded
	}
	peer, _ := c.Connector.GetPeerAddress()
	if r.RequestContext == probeContext {
		return r, &nd.Error{Status: r.Status, Op: "Connection", Addr: peer, Detail: Gone}
	}
	return r, &nd.Error{Status: r.Status, Op: r.RequestType.String(), Addr: peer}
}

// Disconnect ends the connection cleanly; it is no error if the peer was faster.
func (c *Connection) Disconnect(ctx context.Context) error {
	if err := c.Connector.Disconnect(ctx); err != nil && !errors.Is(err, nd.ErrConnectionInvalid) {
		return err
	}
	return nil
}

// Close releases everything.
func (c *Connection) Close() error {
	var errs []error
	c.probe.Stop()
	errs = append(errs, c.Connector.Close())
	if c.QP != nil {
		errs = append(errs, c.QP.Close())
	}
	if c.MR != nil {
		errs = append(errs, c.MR.Close())
	}
	if c.CQ != nil {
		errs = append(errs, c.CQ.Close())
	}
	return errors.Join(errs...)
}

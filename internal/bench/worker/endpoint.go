package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/verbs"
)

// endpoint is one side of connections that share a completion queue and memory.
type endpoint struct {
	dev   *verbs.Device
	cfg   EndpointArgs
	pd    *verbs.PD
	cq    *verbs.CQ
	mr    *verbs.MR
	l     *verbs.Listener
	done  chan error // of the accepting goroutines
	conns []*conn
}

// conn is one connection; its index in the endpoint's list is the Context of its queue pair.
type conn struct {
	qp   *verbs.QP
	id   *verbs.ID
	addr uint64 // of the peer's memory
	rkey uint32
}

// EndpointArgs size an endpoint.
type EndpointArgs struct {
	QPs     int
	Depth   int // of the send and of the receive queue
	Memory  int // bytes
	Receive bool
}

// pingBytes is the size of a posted receive and of inline data.
const pingBytes = 64

func (w *worker) endpoint(a EndpointArgs) (_ struct{}, err error) {
	if w.peer != nil {
		return struct{}{}, errors.New("there is an endpoint already")
	}
	w.peer, err = newEndpoint(w.dev, a)
	return struct{}{}, err
}

func newEndpoint(dev *verbs.Device, a EndpointArgs) (*endpoint, error) {
	e := &endpoint{dev: dev, cfg: a, done: make(chan error, 1), conns: make([]*conn, a.QPs)}
	var err error
	if e.pd, err = dev.AllocPD(); err != nil {
		return nil, err
	}
	if e.cq, err = dev.CreateCQ(2 * a.QPs * a.Depth); err != nil {
		return nil, err
	}
	e.mr, err = e.pd.Allocate(a.Memory, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
	return e, err
}

// qp creates the queue pair of connection n.
func (e *endpoint) qp(n int) (*verbs.QP, error) {
	q, err := e.pd.CreateQP(verbs.QPConfig{
		SendCQ: e.cq, RecvCQ: e.cq, SendDepth: e.cfg.Depth, RecvDepth: e.cfg.Depth, Inline: pingBytes, Context: uint64(n),
	})
	if err != nil || !e.cfg.Receive {
		return q, err
	}
	for range e.cfg.Depth {
		if err := q.PostRecv(e.receive()); err != nil {
			return nil, err
		}
	}
	return q, nil
}

func (e *endpoint) receive() *verbs.RecvWR {
	return &verbs.RecvWR{SGE: []verbs.SGE{e.mr.SGE(0, pingBytes)}}
}

// param tells the peer where the memory is, and which connection this is: requests are accepted in any
// order, and both sides must mean the same connection by a number.
func (e *endpoint) param(n int) verbs.ConnParam {
	b := binary.BigEndian.AppendUint64(nil, e.mr.RemoteAddr())
	b = binary.BigEndian.AppendUint32(b, e.mr.RKey())
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	return verbs.ConnParam{ResponderResources: 4, InitiatorDepth: 4, Private: b}
}

func (e *endpoint) add(n int, q *verbs.QP, id *verbs.ID) error {
	p := id.Peer().Private
	if len(p) < 16 {
		return fmt.Errorf("the peer sends %d bytes of private data, want 16", len(p))
	}
	e.conns[n] = &conn{q, id, binary.BigEndian.Uint64(p), binary.BigEndian.Uint32(p[8:])}
	return nil
}

// connecting is how many connections are set up at a time.
const connecting = 64

const setupTime = 60 * time.Second

// listen accepts, in the background, as many connections as the endpoint has queue pairs.
func (e *endpoint) listen(ctx context.Context) (netip.AddrPort, error) {
	l, err := e.dev.Listen(netip.AddrPortFrom(e.dev.Addr(), 0), 4*connecting)
	if err != nil {
		return netip.AddrPort{}, err
	}
	e.l = l
	go func() { e.done <- each(e.cfg.QPs, func(int) error { return e.accept(ctx) }) }()
	return l.Addr(), nil
}

func (e *endpoint) accept(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setupTime)
	defer cancel()
	id, err := e.l.Request(ctx)
	if err != nil {
		return err
	}
	n := e.cfg.QPs
	if p := id.Peer().Private; len(p) >= 16 {
		n = int(binary.BigEndian.Uint32(p[12:]))
	}
	if n >= e.cfg.QPs {
		return fmt.Errorf("the peer asks for connection %d, there are %d", n, e.cfg.QPs)
	}
	q, err := e.qp(n)
	if err != nil {
		return err
	}
	if err := id.Accept(ctx, q, e.param(n)); err != nil {
		return err
	}
	return e.add(n, q, id)
}

// connect makes all connections of the endpoint and returns the seconds that took, including the creation
// of the queue pairs.
func (w *worker) connect(remote netip.AddrPort) (float64, error) {
	e := w.peer
	start := time.Now()
	err := each(e.cfg.QPs, func(n int) error {
		ctx, cancel := context.WithTimeout(w.ctx, setupTime)
		defer cancel()
		q, err := e.qp(n)
		if err != nil {
			return err
		}
		id, err := e.dev.NewID()
		if err != nil {
			return err
		}
		if err := id.Connect(ctx, remote, q, e.param(n)); err != nil {
			return err
		}
		if err := e.add(n, q, id); err != nil {
			return err
		}
		return id.Establish()
	})
	return time.Since(start).Seconds(), err
}

// each calls f n times, with concurrency connecting, and returns the first error.
func each(n int, f func(int) error) error {
	var next atomic.Int64
	var failed atomic.Bool
	var wg sync.WaitGroup
	errs := make([]error, min(connecting, n))
	for i := range errs {
		wg.Go(func() {
			for !failed.Load() {
				at := int(next.Add(1)) - 1
				if at >= n {
					return
				}
				if err := f(at); err != nil {
					errs[i] = fmt.Errorf("connection %d: %w", at, err)
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// drop destroys everything.
func (e *endpoint) drop() error {
	var errs []error
	for _, c := range e.conns {
		if c != nil {
			errs = append(errs, c.id.Close(), c.qp.Close())
		}
	}
	if e.l != nil {
		errs = append(errs, e.l.Close())
	}
	return errors.Join(append(errs, e.cq.Close(), e.mr.Deregister(), e.pd.Close())...)
}

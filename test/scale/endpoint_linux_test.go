package scale

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// endpoint is one side of many connections: QPs that share a completion queue and a memory region.
type endpoint struct {
	dev  *verbs.Device
	cfg  endpointArgs
	pd   *verbs.PD
	cq   *verbs.CQ
	mr   *verbs.MR
	l    *verbs.Listener
	done chan error // result of the accepting goroutine

	mu    sync.Mutex
	conns []*conn
}

// conn is one connection. Its number is the Context of its QP.
type conn struct {
	qp   *verbs.QP
	id   *verbs.ID
	addr uint64 // of the peer's region
	rkey uint32
	peer int // the connection's number at the peer
}

// endpointArgs are the sizes of an endpoint.
type endpointArgs struct {
	QPs      int
	Depth    int // of the send and the receive queue
	Memory   int // bytes of the region
	Register bool
	Receive  bool // post a receive of slot bytes for each entry of the queue
}

// slot is the size of messages in rounds.
const slot = 64

func (p *program) endpoint(a endpointArgs) (_ struct{}, err error) {
	p.peer, err = newEndpoint(p.dev, a)
	return struct{}{}, err
}

func newEndpoint(dev *verbs.Device, a endpointArgs) (*endpoint, error) {
	e := &endpoint{dev: dev, cfg: a}
	var err error
	if e.pd, err = dev.AllocPD(); err != nil {
		return nil, err
	}
	if e.cq, err = dev.CreateCQ(2 * a.QPs * a.Depth); err != nil {
		return nil, err
	}
	access := verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic | verbs.WindowBind
	if a.Register {
		e.mr, err = e.pd.Register(make([]byte, a.Memory), access)
	} else {
		e.mr, err = e.pd.Allocate(a.Memory, access)
	}
	return e, err
}

// qp creates the QP of connection number n, with its receives.
func (e *endpoint) qp(n int) (*verbs.QP, error) {
	q, err := e.pd.CreateQP(verbs.QPConfig{
		SendCQ: e.cq, RecvCQ: e.cq, SendDepth: e.cfg.Depth, RecvDepth: e.cfg.Depth, Inline: slot, Context: uint64(n),
	})
	if err != nil || !e.cfg.Receive {
		return q, err
	}
	for i := range e.cfg.Depth {
		if err := q.PostRecv(e.receive(n, i)); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// receive returns receive number i of connection n, into a slot of its own.
func (e *endpoint) receive(n, i int) *verbs.RecvWR {
	at := (n*e.cfg.Depth + i) * slot
	return &verbs.RecvWR{ID: uint64(i), SGE: []verbs.SGE{e.mr.SGE(at, slot)}}
}

// param has as private data the address and key of the region, and the number of the connection.
func (e *endpoint) param(n int) verbs.ConnParam {
	b := binary.BigEndian.AppendUint64(nil, e.mr.RemoteAddr())
	b = binary.BigEndian.AppendUint32(b, e.mr.RKey())
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	return verbs.ConnParam{ResponderResources: 4, InitiatorDepth: 4, Private: b}
}

func (e *endpoint) add(q *verbs.QP, id *verbs.ID) {
	p := id.Peer().Private
	c := &conn{qp: q, id: id, addr: binary.BigEndian.Uint64(p), rkey: binary.BigEndian.Uint32(p[8:]),
		peer: int(binary.BigEndian.Uint32(p[12:]))}
	e.mu.Lock()
	e.conns[q.Config().Context] = c
	e.mu.Unlock()
}

// connecting is how many connections are set up at the same time.
const connecting = 64

// listen accepts cfg.QPs connections in the background.
func (e *endpoint) listen() (netip.AddrPort, error) {
	l, err := e.dev.Listen(netip.AddrPortFrom(e.dev.Addr(), 0), 0)
	if err != nil {
		return netip.AddrPort{}, err
	}
	e.l, e.done = l, make(chan error, 1)
	e.conns = make([]*conn, e.cfg.QPs)
	go func() { e.done <- e.each(func(n int) error { return e.acceptOne(n) }) }()
	return l.Addr(), nil
}

// each does something for every connection, several at a time, and returns the first error.
func (e *endpoint) each(f func(n int) error) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	next := 0
	for range min(connecting, e.cfg.QPs) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				mu.Lock()
				n := next
				next++
				stop := first != nil
				mu.Unlock()
				if stop || n >= e.cfg.QPs {
					return
				}
				if err := f(n); err != nil {
					mu.Lock()
					if first == nil {
						first = fmt.Errorf("connection %d: %w", n, err)
					}
					mu.Unlock()
					return
				}
			}
		}()
	}
	wg.Wait()
	return first
}

func (e *endpoint) acceptOne(n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	id, err := e.l.Request(ctx)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	q, err := e.qp(n)
	if err != nil {
		return err
	}
	if err := id.Accept(ctx, q, e.param(n)); err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	e.add(q, id)
	return nil
}

// accepted waits until all connections are established.
func (e *endpoint) accepted(struct{}) (struct{}, error) { return struct{}{}, <-e.done }

// connect makes cfg.QPs connections, and returns the seconds it took.
func (e *endpoint) connect(remote netip.AddrPort) (float64, error) {
	e.conns = make([]*conn, e.cfg.QPs)
	start := time.Now()
	err := e.each(func(n int) error {
		ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
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
		e.add(q, id)
		return id.Establish()
	})
	return time.Since(start).Seconds(), err
}

// ended waits until every QP is in the error state, and returns the seconds it took.
func (e *endpoint) ended(a struct{ Seconds float64 }) (float64, error) {
	start := time.Now()
	for _, c := range e.conns {
		for {
			info, err := c.qp.Query()
			if err != nil {
				return 0, err
			}
			if info.State == verbs.StateError {
				break
			}
			if time.Since(start).Seconds() > a.Seconds {
				return 0, fmt.Errorf("QP %#x is still in %v after %v s", c.qp.Number(), info.State, a.Seconds)
			}
			time.Sleep(time.Millisecond)
		}
	}
	return time.Since(start).Seconds(), nil
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
	errs = append(errs, e.cq.Close(), e.mr.Deregister(), e.pd.Close())
	return errors.Join(errs...)
}

// place is where packets for a QP are sent: its number, and the PSN that it expects first.
type place struct{ QPN, PSN uint32 }

// places returns the places of all connections.
func (e *endpoint) places() ([]place, error) {
	var all []place
	for _, c := range e.conns {
		info, err := c.qp.Query()
		if err != nil {
			return nil, err
		}
		all = append(all, place{c.qp.Number(), info.RQPSN})
	}
	return all, nil
}

// loop connects the endpoint's QPs with each other through the adapter's own address, and starts endless traffic on
// them.
func (e *endpoint) loop() error {
	at, err := e.listen()
	if err != nil {
		return err
	}
	other, err := newEndpoint(e.dev, e.cfg)
	if err != nil {
		return err
	}
	if _, err := other.connect(at); err != nil {
		return err
	}
	if err := <-e.done; err != nil {
		return err
	}
	_, err = other.run(struct{ Size int }{4096})
	return err
}

package scale

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/softvpi/softvpi/verbs"
)

// endpoint is one side of many connections: QPs that share a completion queue
// and a region.
type endpoint struct {
	dev  *verbs.Device
	cfg  endpointArgs
	pd   *verbs.PD
	cq   *verbs.CQ
	mr   *verbs.MR
	l    *verbs.Listener
	done chan error // of the accepting goroutine

	mu    sync.Mutex
	conns []*conn
}

// conn is one connection. Its number is the Context of its QP.
type conn struct {
	qp   *verbs.QP
	id   *verbs.ID
	addr uint64 // of the peer's region
	rkey uint32
	peer int // the number that the peer gave the connection
}

// endpointArgs size an endpoint.
type endpointArgs struct {
	QPs      int
	Depth    int // of the send and the receive queue
	Memory   int // bytes of the region
	Register bool
	Receive  bool // post a receive of slot bytes for each queue entry
}

// slot is the size of the messages of rounds.
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

// qp makes the QP of connection number n, with its receives.
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

// receive is receive number i of connection n: into a slot of its own.
func (e *endpoint) receive(n, i int) *verbs.RecvWR {
	at := (n*e.cfg.Depth + i) * slot
	return &verbs.RecvWR{ID: uint64(i), SGE: []verbs.SGE{e.mr.SGE(at, slot)}}
}

// param has as private data where the region is, its key and the number of the
// connection.
func (e *endpoint) param(n int) verbs.ConnParam {
	b := binary.BigEndian.AppendUint64(nil, e.mr.RemoteAddr())
	b = binary.BigEndian.AppendUint32(b, e.mr.RKey())
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	return verbs.ConnParam{ResponderResources: 4, InitiatorDepth: 4, Private: b}
}

func (e *endpoint) add(q *verbs.QP, id *verbs.ID) {
	p := id.Peer().Private
	c := &conn{qp: q, id: id, addr: binary.BigEndian.Uint64(p), rkey: binary.BigEndian.Uint32(p[8:]), peer: int(binary.BigEndian.Uint32(p[12:]))}
	e.mu.Lock()
	e.conns[q.Config().Context] = c
	e.mu.Unlock()
}

// connecting is how many connections are set up at a time.
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

// each does something for every connection, some at a time, and returns the
// first error.
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

const setupTime = 60 * time.Second

func (e *endpoint) acceptOne(n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), setupTime)
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

// accepted waits until all connections are there.
func (e *endpoint) accepted(struct{}) (struct{}, error) { return struct{}{}, <-e.done }

// connect makes cfg.QPs connections and returns the seconds it took.
func (e *endpoint) connect(remote netip.AddrPort) (float64, error) {
	e.conns = make([]*conn, e.cfg.QPs)
	start := time.Now()
	err := e.each(func(n int) error {
		ctx, cancel := context.WithTimeout(context.Background(), setupTime)
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

// writeArgs ask for RDMA writes of Size bytes on the first QPs connections, with
// Depth outstanding on each, for some seconds.
type writeArgs struct {
	QPs, Size, Depth int
	Seconds          float64
}

// written is what came of it.
type written struct {
	Bytes   uint64
	Seconds float64
	Least   uint64 // completions of the connection with the fewest
	Most    uint64
}

func (e *endpoint) write(a writeArgs) (written, error) {
	counts := make([]uint64, a.QPs)
	post := func(n int) error {
		c := e.conns[n]
		return c.qp.PostSend(&verbs.SendWR{
			Op: verbs.OpWrite, Flags: verbs.Signaled, SGE: []verbs.SGE{e.mr.SGE(0, a.Size)}, RemoteAddr: c.addr, RKey: c.rkey,
		})
	}
	start := time.Now()
	outstanding := 0
	for range a.Depth {
		for n := range a.QPs {
			if err := post(n); err != nil {
				return written{}, err
			}
			outstanding++
		}
	}
	var w written
	wcs := make([]verbs.WC, 64)
	end := start.Add(time.Duration(a.Seconds * float64(time.Second)))
	for outstanding > 0 {
		k, err := e.next(wcs, 30*time.Second)
		if err != nil {
			return w, fmt.Errorf("%d outstanding: %w", outstanding, err)
		}
		now := time.Now()
		for i := range wcs[:k] {
			if wcs[i].Status != verbs.Success {
				return w, fmt.Errorf("connection %d: %v", wcs[i].Context, wcs[i].Status)
			}
			outstanding--
			if now.After(end) {
				continue
			}
			w.Bytes += uint64(a.Size)
			w.Seconds = now.Sub(start).Seconds()
			counts[wcs[i].Context]++
			if err := post(int(wcs[i].Context)); err != nil {
				return w, err
			}
			outstanding++
		}
	}
	w.Least, w.Most = counts[0], counts[0]
	for _, n := range counts {
		w.Least, w.Most = min(w.Least, n), max(w.Most, n)
	}
	return w, nil
}

// next takes completions, waiting no longer than d.
func (e *endpoint) next(wcs []verbs.WC, d time.Duration) (int, error) {
	for range 100 {
		if n, err := e.cq.Poll(wcs); n > 0 || err != nil {
			return n, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return e.cq.Next(ctx, wcs)
}

// roundArgs ask for Rounds messages on each of the first QPs connections, every
// one with a content of its own.
type roundArgs struct{ QPs, Rounds int }

// fill writes the content of message number r of connection n, as its sender
// counts them.
func fill(b []byte, n, r int) {
	seed := uint64(n)<<32 | uint64(r)
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], seed*0x9e3779b97f4a7c15+uint64(i))
	}
	binary.LittleEndian.PutUint32(b, uint32(r))
	binary.LittleEndian.PutUint32(b[4:], uint32(n))
}

// rounds sends requests on all connections, the next of each when the answer to
// the one before has come, and returns the seconds until every answer was there.
// Answers must hold the bytes of their request.
func (e *endpoint) rounds(a roundArgs) (float64, error) {
	sent, got := make([]int, e.cfg.QPs), make([]int, e.cfg.QPs)
	var full []int // connections whose queue had no room for the next request
	next := func(n int) error {
		if sent[n] == a.Rounds {
			return nil // by one that found room before what waits in full
		}
		fill(e.sendSlot(n, sent[n]%e.cfg.Depth), n, sent[n])
		err := e.reply(n, sent[n]%e.cfg.Depth)
		if verbs.IsQueueFull(err) {
			full = append(full, n)
			return nil
		}
		sent[n]++
		return err
	}
	start := time.Now()
	for range min(e.cfg.Depth, a.Rounds) {
		for n := range a.QPs {
			if err := next(n); err != nil {
				return 0, err
			}
		}
	}
	want := make([]byte, slot)
	take := func(wc *verbs.WC) error {
		n := int(wc.Context)
		fill(want, n, got[n])
		if b := e.receiveSlot(n, int(wc.ID)); string(b) != string(want) {
			return fmt.Errorf("answer %d holds %x, want %x", got[n], b, want)
		}
		got[n]++
		if err := e.conns[n].qp.PostRecv(e.receive(n, int(wc.ID))); err != nil {
			return err
		}
		return next(n)
	}
	err := e.messages(a.QPs*a.Rounds, take, func() error {
		late := full
		full = nil
		for _, n := range late {
			if err := next(n); err != nil {
				return err
			}
		}
		return nil
	})
	return time.Since(start).Seconds(), err
}

// received answers the requests of rounds with their own bytes and checks every
// byte and the order.
func (e *endpoint) received(a roundArgs) (struct{}, error) {
	want := make([]byte, slot)
	peer := make([]int, e.cfg.QPs) // the number that the peer gave the connection
	got := make([]int, e.cfg.QPs)
	type answer struct{ n, slot int }
	var full []answer
	late := map[int]bool{} // connections of full: what comes behind waits too, though there be room by then
	send := func(r answer) error {
		if !late[r.n] {
			if err := e.reply(r.n, r.slot); !verbs.IsQueueFull(err) {
				return err
			}
		}
		full, late[r.n] = append(full, r), true
		return nil
	}
	take := func(wc *verbs.WC) error {
		n := int(wc.Context)
		b := e.receiveSlot(n, int(wc.ID))
		if got[n] == 0 {
			peer[n] = int(binary.LittleEndian.Uint32(b[4:]))
		}
		if fill(want, peer[n], got[n]); string(b) != string(want) {
			return fmt.Errorf("message %d holds %x, want %x", got[n], b, want)
		}
		got[n]++
		at := (got[n] - 1) % e.cfg.Depth
		copy(e.sendSlot(n, at), b)
		if err := e.conns[n].qp.PostRecv(e.receive(n, int(wc.ID))); err != nil {
			return err
		}
		return send(answer{n, at})
	}
	return struct{}{}, e.messages(a.QPs*a.Rounds, take, func() error {
		again := full
		full = nil
		clear(late)
		for _, r := range again {
			if err := send(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// messages takes so many messages, and calls again after each batch.
func (e *endpoint) messages(left int, take func(*verbs.WC) error, again func() error) error {
	wcs := make([]verbs.WC, 64)
	for left > 0 {
		k, err := e.next(wcs, 30*time.Second)
		if err != nil {
			return fmt.Errorf("%d messages missing: %w", left, err)
		}
		for i := range wcs[:k] {
			wc := &wcs[i]
			if wc.Status != verbs.Success {
				return fmt.Errorf("connection %d: %v", wc.Context, wc.Status)
			}
			if wc.Flags&verbs.ReceiveSide == 0 {
				continue
			}
			if wc.ByteLen != slot {
				return fmt.Errorf("connection %d: message of %d bytes", wc.Context, wc.ByteLen)
			}
			if err := take(wc); err != nil {
				return fmt.Errorf("connection %d: %w", wc.Context, err)
			}
			left--
		}
		if err := again(); err != nil {
			return err
		}
	}
	return nil
}

// reply sends what stands in a send slot. It asks for a completion so that the
// queue empties in order.
func (e *endpoint) reply(n, i int) error {
	at := e.cfg.QPs*e.cfg.Depth*slot + (n*e.cfg.Depth+i)*slot
	return e.conns[n].qp.PostSend(&verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, SGE: []verbs.SGE{e.mr.SGE(at, slot)}})
}

// receiveSlot and sendSlot are the memory of message i of connection n.
func (e *endpoint) receiveSlot(n, i int) []byte {
	at := (n*e.cfg.Depth + i) * slot
	return e.mr.Bytes()[at : at+slot]
}

func (e *endpoint) sendSlot(n, i int) []byte {
	at := e.cfg.QPs*e.cfg.Depth*slot + (n*e.cfg.Depth+i)*slot
	return e.mr.Bytes()[at : at+slot]
}

// run starts writes, reads and sends without end on all connections and returns
// when each has completed one. It is what a program does that is killed next.
func (e *endpoint) run(a struct{ Size int }) (struct{}, error) {
	done := make(chan error, 1)
	go func() {
		count := make([]int, e.cfg.QPs)
		left := e.cfg.QPs
		post := func(n int) error {
			c := e.conns[n]
			op := []verbs.Opcode{verbs.OpWrite, verbs.OpRead}[count[n]%2]
			return c.qp.PostSend(&verbs.SendWR{Op: op, Flags: verbs.Signaled, SGE: []verbs.SGE{e.mr.SGE(0, a.Size)}, RemoteAddr: c.addr, RKey: c.rkey})
		}
		fail := func(err error) {
			if left > 0 {
				done <- err
			}
		}
		for range e.cfg.Depth {
			for n := range e.conns {
				if err := post(n); err != nil {
					fail(err)
					return
				}
			}
		}
		wcs := make([]verbs.WC, 16)
		for {
			k, err := e.next(wcs, 10*time.Second)
			if err != nil {
				fail(err)
				return
			}
			for i := range wcs[:k] {
				if wcs[i].Status != verbs.Success {
					fail(wcs[i].Status.Err())
					return
				}
				n := int(wcs[i].Context)
				if n >= len(count) {
					fail(fmt.Errorf("completion of connection %d", n)) // the rings were scribbled on
					return
				}
				if count[n]++; count[n] == 2 {
					if left--; left == 0 {
						done <- nil
					}
				}
				if err := post(n); err != nil {
					fail(err)
					return
				}
			}
		}
	}()
	return struct{}{}, <-done
}

// ended waits until every QP is in the error state and returns the seconds that
// took.
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

// place is where a packet for a QP goes: its number and the PSN that it expects
// first.
type place struct{ QPN, PSN uint32 }

// places returns those of all connections.
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

// loop connects the endpoint's QPs with each other over the adapter's own
// address, and starts traffic without end on them.
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

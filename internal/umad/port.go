package umad

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/mad"
)

const (
	responseBit    = 0x80 // of the method (IBA 13.4.5)
	transactionID  = 8
	minimumTimeout = time.Millisecond
)

// Server answers the requests of a management class that come to a port. It is called by one goroutine at a time,
// and addresses are filled in for it. Nil is no answer.
type Server func(request *Datagram) (answer *[mad.Len]byte)

// Port is an open port of an adapter. Its methods may be called by many goroutines.
type Port struct {
	transport Transport
	device    Device
	sending   sync.Mutex // a transport takes one MAD at a time

	mu       sync.Mutex
	exchange *exchange
	servers  map[uint8]Server
	timer    *time.Timer
	armed    clock.Time // when the timer goes off; clock.Never: it does not
	opened   time.Time  // what the exchange counts from
	unused   []*pending
	closed   bool
	finished chan struct{}
}

// newPort opens a port over a transport, which it closes at its end. First is where transaction IDs begin; it
// should differ from program to program.
func newPort(t Transport, d Device, first uint32) *Port {
	p := &Port{transport: t, device: d, exchange: newExchange(first), servers: map[uint8]Server{}, finished: make(chan struct{}), armed: clock.Never, opened: time.Now()}
	p.timer = time.AfterFunc(time.Hour, p.tick)
	p.timer.Stop()
	go p.receive()
	return p
}

// now is the time for the exchange.
func (p *Port) now() clock.Time { return clock.Time(time.Since(p.opened)) }

// Device is what the machine knew of the adapter when the port was opened.
func (p *Port) Device() Device { return p.device }

// listener is a transport to which must be said what is wanted of what nobody asked for.
type listener interface {
	listen(class uint8) error
}

// Serve hands the requests of a management class to s from now on. The error is that of a transport where another program
// has them.
func (p *Port) Serve(class uint8, s Server) error {
	p.mu.Lock()
	p.servers[class] = s
	p.mu.Unlock()
	if l, ok := p.transport.(listener); ok {
		return l.listen(class)
	}
	return nil
}

// Close ends the port. Requests that wait for an answer end with ErrClosed.
func (p *Port) Close() error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	p.timer.Stop()
	p.mu.Unlock()
	var err error
	if first {
		err = p.transport.Close()
	}
	<-p.finished
	return err
}

// Start sends a request, a whole MAD, whose transaction ID is filled in. Done is called once, by any goroutine, with
// the answer or the reason why there is none: ErrTimeout, ErrClosed, or what the transport says. It must not wait for
// other answers, and may start other requests, which is the fastest way to ask many questions. The answer is its own until it
// returns. What status the answer has is not looked at.
func (p *Port) Start(to Address, request *[mad.Len]byte, t Timing, done func(answer *Datagram, err error)) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		done(nil, ErrClosed)
		return
	}
	r := p.fresh()
	r.timeout, r.triesLeft, r.done, r.sending = max(t.Timeout, minimumTimeout), max(t.Tries, 1), done, 1
	r.datagram.Remote, r.datagram.LocalQP, r.datagram.MAD = to, to.QP, *request
	p.exchange.add(p.now(), r)
	binary.BigEndian.PutUint64(r.datagram.MAD[transactionID:], uint64(r.id))
	p.schedule()
	p.mu.Unlock()
	p.send(r)
}

// Call is Start that waits for the answer.
func (p *Port) Call(ctx context.Context, to Address, request *[mad.Len]byte, t Timing) (*Datagram, error) {
	type result struct {
		answer *Datagram
		err    error
	}
	ended := make(chan result, 1)
	p.Start(to, request, t, func(d *Datagram, err error) {
		if d != nil {
			d = new(*d)
		}
		ended <- result{d, err}
	})
	select {
	case r := <-ended:
		return r.answer, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Send sends a MAD that nobody answers, as it is.
func (p *Port) Send(d *Datagram) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	return p.transport.Send(d)
}

// fresh is a request that nobody has any more, or a new one. The lock is held.
func (p *Port) fresh() *pending {
	n := len(p.unused)
	if n == 0 {
		return new(pending)
	}
	r := p.unused[n-1]
	p.unused = p.unused[:n-1]
	return r
}

// maxUnused bounds the requests that are kept to be used again.
const maxUnused = 4096

// over lets go of a request that is not waited for any more, and returns whom to tell. The lock is held.
func (p *Port) over(r *pending) (done func(*Datagram, error)) {
	done = r.done
	r.done, r.transfer = nil, nil
	p.let(r)
	return done
}

// let keeps a request to be used again that is over, where nobody is at sending it. The lock is held.
func (p *Port) let(r *pending) {
	if r.done == nil && r.sending == 0 && len(p.unused) < maxUnused {
		p.unused = append(p.unused, r)
	}
}

// send sends a request, which the caller has marked so. What fails here ends it.
func (p *Port) send(r *pending) {
	err := p.Send(&r.datagram)
	p.mu.Lock()
	r.sending--
	if err == nil || r.done == nil {
		p.let(r)
		p.mu.Unlock()
		return
	}
	p.exchange.remove(r)
	done := p.over(r)
	if p.closed {
		err = ErrClosed
	}
	p.mu.Unlock()
	done(nil, err)
}

// schedule sees to it that the timer goes off at the next deadline, or before. The lock is held.
func (p *Port) schedule() {
	if at := p.exchange.deadline(); at < p.armed && !p.closed {
		p.armed = at
		p.timer.Reset(at.Sub(p.now()))
	}
}

// tick asks again where nobody answered in time.
func (p *Port) tick() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	again, over := p.exchange.expire(p.now())
	p.armed = clock.Never
	p.schedule()
	for _, r := range again {
		r.sending++
	}
	ended := make([]func(*Datagram, error), len(over))
	for i, r := range over {
		ended[i] = p.over(r)
	}
	p.mu.Unlock()
	for _, done := range ended {
		done(nil, ErrTimeout)
	}
	for _, r := range again {
		p.send(r)
	}
}

// receive works for the port until it is closed, or the transport fails.
func (p *Port) receive() {
	var err error
	for d := new(Datagram); ; {
		if err = p.transport.Receive(d); err != nil {
			break
		}
		p.take(d)
	}
	p.mu.Lock()
	if p.closed {
		err = ErrClosed
	}
	p.closed = true
	p.timer.Stop()
	var ended []func(*Datagram, error)
	for _, r := range p.exchange.abandon() {
		ended = append(ended, p.over(r))
	}
	p.mu.Unlock()
	for _, done := range ended {
		done(nil, err)
	}
	close(p.finished)
}

// take is what one MAD that came in does.
func (p *Port) take(d *Datagram) {
	id := uint32(binary.BigEndian.Uint64(d.MAD[transactionID:]))
	switch {
	case d.Failed:
		p.undelivered(id)
	case d.MAD[3]&responseBit != 0:
		p.answer(id, d)
	default:
		p.serve(d)
	}
}

// answer hands an answer, or a segment of one, to the request with the ID.
func (p *Port) answer(id uint32, d *Datagram) {
	p.mu.Lock()
	r := p.exchange.waiting[id]
	if r == nil || !answers(&r.datagram, d) {
		p.mu.Unlock()
		return // late, twice, or of somebody who lies
	}
	over, reply, err := true, (*mad.SA)(nil), error(nil)
	if m, segment := segmented(d); segment {
		over, reply, err = r.take(m, d)
	}
	var done func(*Datagram, error)
	if over {
		p.exchange.remove(r)
		done = p.over(r)
	} else {
		p.exchange.extend(p.now(), r)
	}
	p.mu.Unlock()
	if reply != nil {
		// What fails here fails the transfer: its next segment does not come.
		_ = p.Send(&Datagram{Remote: d.Remote, LocalQP: d.LocalQP, MAD: [mad.Len]byte(reply.Append(nil))})
	}
	switch {
	case over && err != nil:
		done(nil, err)
	case over:
		done(d, nil)
	}
}

// answers tells whether a is the answer to a request as far as its header says. Who asks for MultiPathRecords gets PathRecords
// (IBA 15.2.5.20).
func answers(request, a *Datagram) bool {
	asked, told := binary.BigEndian.Uint16(request.MAD[16:]), binary.BigEndian.Uint16(a.MAD[16:])
	paths := request.MAD[1] == mad.ClassSubnetAdm && asked == mad.AttrMultiPathRecord && told == mad.AttrPathRecord
	return request.MAD[1] == a.MAD[1] && (asked == told || paths)
}

// undelivered asks again, or gives up.
func (p *Port) undelivered(id uint32) {
	p.mu.Lock()
	again, over := p.exchange.failed(p.now(), id)
	var done func(*Datagram, error)
	if over != nil {
		done = p.over(over)
	}
	if again != nil {
		again.sending++
	}
	p.mu.Unlock()
	if done != nil {
		done(nil, ErrTimeout)
	}
	if again != nil {
		p.send(again)
	}
}

// serve answers a request of another node.
func (p *Port) serve(d *Datagram) {
	p.mu.Lock()
	s := p.servers[d.MAD[1]]
	p.mu.Unlock()
	if s == nil {
		return
	}
	if answer := s(d); answer != nil {
		// Where the transport fails, the receiver ends the port.
		_ = p.Send(&Datagram{Remote: d.Remote, LocalQP: d.LocalQP, MAD: *answer})
	}
}

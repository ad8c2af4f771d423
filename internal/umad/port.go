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

// Server answers the requests of a management class that a port receives. One goroutine at a time calls
// it, and the answer's addresses are filled in. Nil means no answer.
type Server func(request *Datagram) (answer *[mad.Len]byte)

// Port is an open port of an adapter. Its methods may be called concurrently.
type Port struct {
	transport Transport
	device    Device
	sending   sync.Mutex // held while sending: a transport accepts one MAD at a time

	mu       sync.Mutex
	exchange *exchange
	servers  map[uint8]Server
	timer    *time.Timer
	armed    clock.Time // when the timer expires; clock.Never: it is stopped
	opened   time.Time  // start of the exchange's time
	unused   []*pending
	closed   bool
	finished chan struct{}
}

// newPort opens a port over a transport, which it closes when it ends. first is where transaction IDs
// begin; it should differ from program to program.
func newPort(t Transport, d Device, first uint32) *Port {
	p := &Port{transport: t, device: d, exchange: newExchange(first), servers: map[uint8]Server{}, finished: make(chan struct{}),
		armed: clock.Never, opened: time.Now()}
	p.timer = time.AfterFunc(time.Hour, p.tick)
	p.timer.Stop()
	go p.receive()
	return p
}

// now returns the exchange's time.
func (p *Port) now() clock.Time { return clock.Time(time.Since(p.opened)) }

// Device returns what the machine knew about the adapter when the port was opened.
func (p *Port) Device() Device { return p.device }

// listener is a transport that must be told which unsolicited MADs are wanted.
type listener interface {
	listen(class uint8) error
}

// Serve passes the requests of a management class to s from now on. It fails if the transport says that
// another program already gets them.
func (p *Port) Serve(class uint8, s Server) error {
	p.mu.Lock()
	p.servers[class] = s
	p.mu.Unlock()
	if l, ok := p.transport.(listener); ok {
		return l.listen(class)
	}
	return nil
}

// Close closes the port. Requests that wait for an answer end with ErrClosed.
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

// Start sends a request, a complete MAD, whose transaction ID it fills in. done is called once, from any
// goroutine, with the answer or the reason why there is none: ErrTimeout, ErrClosed, or the transport's
// error. It must not wait for other answers but may start other requests, which is the fastest way to send
// many. The answer is valid until done returns. Its status is not checked.
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

// Call is Start and waits for the answer.
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

// Send sends a MAD that expects no answer, unmodified.
func (p *Port) Send(d *Datagram) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	return p.transport.Send(d)
}

// fresh returns an unused request, or a new one. The caller holds the lock.
func (p *Port) fresh() *pending {
	n := len(p.unused)
	if n == 0 {
		return new(pending)
	}
	r := p.unused[n-1]
	p.unused = p.unused[:n-1]
	return r
}

// maxUnused limits the requests that are kept for reuse.
const maxUnused = 4096

// over drops a request that is no longer waited for, and returns its callback. The caller holds the lock.
func (p *Port) over(r *pending) (done func(*Datagram, error)) {
	done = r.done
	r.done, r.transfer = nil, nil
	p.let(r)
	return done
}

// let keeps a completed request for reuse unless somebody is still sending it. The caller holds the lock.
func (p *Port) let(r *pending) {
	if r.done == nil && r.sending == 0 && len(p.unused) < maxUnused {
		p.unused = append(p.unused, r)
	}
}

// send sends a request, which the caller has marked as being sent. A failure ends the request.
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

// schedule ensures that the timer expires at the next deadline, or earlier. The caller holds the lock.
func (p *Port) schedule() {
	if at := p.exchange.deadline(); at < p.armed && !p.closed {
		p.armed = at
		p.timer.Reset(at.Sub(p.now()))
	}
}

// tick retransmits requests that were not answered in time.
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

// receive handles incoming MADs until the port is closed or the transport fails.
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

// take handles one incoming MAD.
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

// answer handles an answer, or a segment of one, to the request with the ID.
func (p *Port) answer(id uint32, d *Datagram) {
	p.mu.Lock()
	r := p.exchange.waiting[id]
	if r == nil || !answers(&r.datagram, d) {
		p.mu.Unlock()
		return // late, a duplicate, or forged
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
		// If this fails, so does the transfer: its next segment does not arrive.
		_ = p.Send(&Datagram{Remote: d.Remote, LocalQP: d.LocalQP, MAD: [mad.Len]byte(reply.Append(nil))})
	}
	switch {
	case over && err != nil:
		done(nil, err)
	case over:
		done(d, nil)
	}
}

// answers reports whether a is the answer to a request, judging by its header. A request for
// MultiPathRecords is answered with PathRecords (IBA 15.2.5.20).
func answers(request, a *Datagram) bool {
	asked, told := binary.BigEndian.Uint16(request.MAD[16:]), binary.BigEndian.Uint16(a.MAD[16:])
	paths := request.MAD[1] == mad.ClassSubnetAdm && asked == mad.AttrMultiPathRecord && told == mad.AttrPathRecord
	return request.MAD[1] == a.MAD[1] && (asked == told || paths)
}

// undelivered retransmits or gives up.
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
		// If the transport fails, the receiver ends the port.
		_ = p.Send(&Datagram{Remote: d.Remote, LocalQP: d.LocalQP, MAD: *answer})
	}
}

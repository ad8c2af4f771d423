// Package sa is a client of an InfiniBand subnet's administration (IBA 15): it queries paths, joins
// multicast groups, and offers and finds services. Like the other engines it is driven by its caller, who
// passes in the time and received MADs, and takes out MADs to send, answers and the next deadline.
// Requests answered by one record (Get, Set, Delete) are implemented; tables (RMPP) are not.
package sa

import (
	"errors"
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Defaults and limits of [Config]: SaTimeout and SaRetries (WinOF manual, IPoIB registry keys).
const (
	defaultTimeout = time.Second
	defaultRetries = 10
	// maxPending limits the requests waiting for an answer, window those of them in flight: one
	// administration serves thousands of ports.
	maxPending = 16384
	window     = 64
)

var (
	// ErrTimeout says that the administration did not answer.
	ErrTimeout = errors.New("the subnet administration does not answer")
	// ErrNoManager says that the port has no subnet manager.
	ErrNoManager = errors.New("the port has no subnet manager")
	// ErrSuperseded says that a later request of the port asks for the opposite.
	ErrSuperseded = errors.New("a later request asks for the opposite")
	// ErrFull says that too many requests are waiting.
	ErrFull = errors.New("too many requests are waiting for the subnet administration")
)

// StatusError is the administration's refusal of a request.
type StatusError struct{ Status uint16 }

// Error implements error.
func (e *StatusError) Error() string {
	return "the subnet administration refuses: " + mad.StatusText(e.Status)
}

// Config configures a [Client]. The zero value of a field selects its default.
type Config struct {
	// Timeout is the time before a request is retransmitted, Retries how often that happens; the defaults
	// are 1 s and 10.
	Timeout time.Duration
	Retries int
	// Transaction is the first transaction ID. Only the low 32 bits count up.
	Transaction uint64
}

// Request gets or changes a record.
type Request struct {
	Method    uint8 // mad.MethodGet, mad.MethodSet or mad.MethodDelete
	Attribute uint16
	Mask      uint64 // components of Data that are valid
	Data      []byte // the record, at most mad.SADataLen bytes
}

// Ticket identifies a request.
type Ticket uint64

// Answer is the result of a request.
type Answer struct {
	Ticket Ticket
	Err    error // a *StatusError, ErrTimeout, ErrNoManager or ErrSuperseded; nil: Data holds the record
	Data   [mad.SADataLen]byte
}

// Datagram is a MAD for QP1 of the subnet manager's port.
type Datagram struct {
	DLID ib.LID
	SL   uint8
	MAD  [mad.Len]byte
}

// Counters count since the client was created.
type Counters struct{ Requests, Retries, Timeouts, Refused, Unexpected uint64 }

// Client is the client of one port. It must not be called concurrently.
type Client struct {
	cfg      Config
	lid      ib.LID
	sl       uint8
	next     uint64
	pending  map[uint64]*pending
	waiting  []*pending // not sent yet, oldest first
	flying   []*pending // sent, sorted by the time of the last transmission
	send     []*pending
	answers  []Answer
	counters Counters
}

// pending is a request that has not been answered.
type pending struct {
	tid     uint64
	mad     [mad.Len]byte
	due     clock.Time
	retries int
	queued  bool // to be sent
	done    bool
}

// SetRepetition changes the timeout and the number of retries of future requests; 0: the default.
func (c *Client) SetRepetition(timeout time.Duration, retries int) error {
	cfg := c.cfg
	cfg.Timeout, cfg.Retries = timeout, retries
	n, err := New(cfg)
	if err == nil {
		c.cfg = n.cfg
	}
	return err
}

// New creates a client. The error says which field of cfg is wrong.
func New(cfg Config) (*Client, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Retries == 0 {
		cfg.Retries = defaultRetries
	}
	switch {
	case cfg.Timeout < 0:
		return nil, fmt.Errorf("sa: Timeout is %v, want more than 0", cfg.Timeout)
	case cfg.Retries < 0 || cfg.Retries > 1000:
		return nil, fmt.Errorf("sa: Retries is %d, want 1 to 1000", cfg.Retries)
	}
	return &Client{cfg: cfg, pending: map[uint64]*pending{}, next: cfg.Transaction}, nil
}

// SetManager says where the subnet manager is; LID 0: there is none. Unanswered requests are sent to the
// new one at once.
func (c *Client) SetManager(lid ib.LID, sl uint8) {
	if lid == c.lid && sl == c.sl {
		return
	}
	c.lid, c.sl = lid, sl
	if lid == 0 {
		return
	}
	for _, p := range c.flying {
		if !p.done {
			c.launch(p)
		}
	}
}

// Ask sends a request. [Client.Answers] returns the answer under the ticket, at the latest when the
// retries are used up. The error is ErrFull.
//
// A request that sets or deletes a record ends those for the opposite that have no answer yet: repeated after it, they would undo it.
func (c *Client) Ask(now clock.Time, r Request) (Ticket, error) {
	if len(c.pending) >= maxPending {
		return 0, ErrFull
	}
	c.counters.Requests++
	c.next = c.next&^0xffffffff | uint64(uint32(c.next)+1)
	m := mad.NewSA(r.Method, r.Attribute, 0, c.next)
	m.ComponentMask = r.Mask
	copy(m.Data[:], r.Data)
	p := &pending{tid: c.next, retries: c.cfg.Retries}
	m.Append(p.mad[:0])
	c.supersede(now, p)
	c.pending[p.tid] = p
	c.waiting = append(c.waiting, p)
	c.fly(now)
	return Ticket(p.tid), nil
}

// fly sends waiting requests as far as the window permits.
func (c *Client) fly(now clock.Time) {
	for len(c.waiting) > 0 && len(c.pending)-len(c.waiting) < window {
		p := c.waiting[0]
		c.waiting[0] = nil
		c.waiting = c.waiting[1:]
		c.flying = append(c.flying, p)
		p.due = now.Add(c.cfg.Timeout)
		c.launch(p)
	}
}

// launch queues a request for transmission.
func (c *Client) launch(p *pending) {
	if c.lid != 0 && !p.queued {
		p.queued = true
		c.send = append(c.send, p)
	}
}

// Receive handles a MAD of the class received on QP1, and reports whether it answers one of this client's
// requests.
func (c *Client) Receive(now clock.Time, b []byte) bool {
	m, err := mad.ParseSA(b)
	if err != nil {
		c.counters.Unexpected++
		return false
	}
	p := c.pending[m.TransactionID]
	if p == nil || m.Method&0x80 == 0 || m.AttributeID != attributeOf(p) {
		c.counters.Unexpected++
		return false
	}
	if m.Status&0xff == mad.StatusBusy { // its timer will retransmit it
		return true
	}
	a := Answer{Ticket: Ticket(p.tid), Data: m.Data}
	if m.Status != mad.StatusOK {
		c.counters.Refused++
		a.Err = &StatusError{m.Status}
	}
	c.finish(now, p, a)
	return true
}

// Expects reports whether a MAD of the class has the transaction of an unanswered request.
func (c *Client) Expects(b []byte) bool {
	m, err := mad.ParseSA(b)
	return err == nil && m.Method&0x80 != 0 && c.pending[m.TransactionID] != nil
}

func attributeOf(p *pending) uint16 { return uint16(p.mad[16])<<8 | uint16(p.mad[17]) }

func (c *Client) finish(now clock.Time, p *pending, a Answer) {
	p.done = true
	delete(c.pending, p.tid)
	c.answers = append(c.answers, a)
	c.drop()
	c.fly(now)
}

// drop removes completed requests from the front of flying.
func (c *Client) drop() {
	for len(c.flying) > 0 && c.flying[0].done {
		c.flying[0] = nil
		c.flying = c.flying[1:]
	}
}

// Advance retransmits requests that were not answered in time.
func (c *Client) Advance(now clock.Time) {
	for len(c.flying) > 0 && c.flying[0].due <= now {
		p := c.flying[0]
		c.flying[0] = nil
		c.flying = c.flying[1:]
		switch {
		case p.done:
		case p.retries == 0:
			c.counters.Timeouts++
			err := ErrTimeout
			if c.lid == 0 {
				err = ErrNoManager
			}
			c.finish(now, p, Answer{Ticket: Ticket(p.tid), Err: err})
		default:
			p.retries--
			c.counters.Retries++
			p.due = now.Add(c.cfg.Timeout)
			c.flying = append(c.flying, p)
			c.launch(p)
		}
	}
	c.drop()
}

// Deadline returns when Advance must be called next; clock.Never if not at all.
func (c *Client) Deadline() clock.Time {
	if len(c.flying) == 0 {
		return clock.Never
	}
	return c.flying[0].due
}

// Transmit moves MADs to send to out and returns their number.
func (c *Client) Transmit(out []Datagram) int {
	n, used := 0, 0
	for _, p := range c.send {
		if n == len(out) {
			break
		}
		used++
		if p.queued = false; p.done {
			continue
		}
		out[n] = Datagram{DLID: c.lid, SL: c.sl, MAD: p.mad}
		n++
	}
	c.send = c.send[:copy(c.send, c.send[used:])]
	return n
}

// Answers moves answers to out and returns their number.
func (c *Client) Answers(out []Answer) int {
	n := copy(out, c.answers)
	c.answers = c.answers[:copy(c.answers, c.answers[n:])]
	return n
}

// Counters returns a copy of the counters.
func (c *Client) Counters() Counters { return c.counters }

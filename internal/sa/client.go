// Package sa is a client of an InfiniBand subnet's administration (IBA 15): it asks for paths, takes part in
// multicast groups, and offers and finds services. It is an engine like the others: it is told the time and the
// MADs that arrive, and hands out MADs to send, answers and its next deadline. Requests that answer with one
// record (Get, Set, Delete) are built; tables (RMPP) are not.
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
	// maxPending bounds the requests that wait for an answer, window those of them that are sent and not
	// answered yet: an administration is one for thousands of ports.
	maxPending = 16384
	window     = 64
)

var (
	// ErrTimeout says that the administration did not answer.
	ErrTimeout = errors.New("the subnet administration does not answer")
	// ErrNoManager says that the port has no subnet manager.
	ErrNoManager = errors.New("the port has no subnet manager")
	// ErrFull says that too many requests wait.
	ErrFull = errors.New("too many requests wait for the subnet administration")
)

// StatusError is the administration's refusal of a request.
type StatusError struct{ Status uint16 }

// Error implements error.
func (e *StatusError) Error() string {
	return "the subnet administration refuses: " + mad.StatusText(e.Status)
}

// Config is what a [Client] is made with. The zero value of a field means its default.
type Config struct {
	// Timeout is the time before a request is sent again, Retries how often it is; 1 s and 10.
	Timeout time.Duration
	Retries int
	// Transaction is the first transaction ID. Only the low 32 bits count up.
	Transaction uint64
}

// Request asks for a record, or for one to be changed.
type Request struct {
	Method    uint8 // mad.MethodGet, mad.MethodSet or mad.MethodDelete
	Attribute uint16
	Mask      uint64 // components of Data that count
	Data      []byte // the record, at most mad.SADataLen bytes
}

// Ticket names a request.
type Ticket uint64

// Answer is what became of a request.
type Answer struct {
	Ticket Ticket
	Err    error // a *StatusError, ErrTimeout or ErrNoManager; nil: Data holds the record
	Data   [mad.SADataLen]byte
}

// Datagram is a MAD for QP1 of the subnet manager's port.
type Datagram struct {
	DLID ib.LID
	SL   uint8
	MAD  [mad.Len]byte
}

// Counters count since the client was made.
type Counters struct{ Requests, Retries, Timeouts, Refused, Unexpected uint64 }

// Client is one port's. One goroutine at a time calls it.
type Client struct {
	cfg      Config
	lid      ib.LID
	sl       uint8
	next     uint64
	pending  map[uint64]*pending
	waiting  []*pending // not sent yet, oldest first
	flying   []*pending // sent, by the time that they were sent last
	send     []*pending
	answers  []Answer
	counters Counters
}

// pending is a request without answer.
type pending struct {
	tid     uint64
	mad     [mad.Len]byte
	due     clock.Time
	retries int
	queued  bool // to be sent
	done    bool
}

// SetRepetition changes when and how often requests are sent again, for those that are asked from now on; 0: the default.
func (c *Client) SetRepetition(timeout time.Duration, retries int) error {
	cfg := c.cfg
	cfg.Timeout, cfg.Retries = timeout, retries
	n, err := New(cfg)
	if err == nil {
		c.cfg = n.cfg
	}
	return err
}

// New makes a client. The error names the field of cfg that is wrong.
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

// SetManager says where the subnet manager is; LID 0: there is none. What was asked of another one is asked of
// the new one at once.
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

// Ask asks. The answer comes out of [Client.Answers] under the ticket, at the latest when the retries are used up.
// The error is ErrFull.
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
	c.pending[p.tid] = p
	c.waiting = append(c.waiting, p)
	c.fly(now)
	return Ticket(p.tid), nil
}

// fly sends what waits, as far as the window allows.
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

// launch has a request sent.
func (c *Client) launch(p *pending) {
	if c.lid != 0 && !p.queued {
		p.queued = true
		c.send = append(c.send, p)
	}
}

// Receive takes a MAD of the class that arrived on QP1, and reports whether it was an answer to a request here.
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
	if m.Status&0xff == mad.StatusBusy { // it comes again by its timer
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

func attributeOf(p *pending) uint16 { return uint16(p.mad[16])<<8 | uint16(p.mad[17]) }

func (c *Client) finish(now clock.Time, p *pending, a Answer) {
	p.done = true
	delete(c.pending, p.tid)
	c.answers = append(c.answers, a)
	c.drop()
	c.fly(now)
}

// drop forgets what is done at the front of the requests in flight.
func (c *Client) drop() {
	for len(c.flying) > 0 && c.flying[0].done {
		c.flying[0] = nil
		c.flying = c.flying[1:]
	}
}

// Advance sends again what was not answered in time.
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

// Deadline is when Advance is wanted next; clock.Never for not at all.
func (c *Client) Deadline() clock.Time {
	if len(c.flying) == 0 {
		return clock.Never
	}
	return c.flying[0].due
}

// Transmit moves MADs that are to be sent to out and returns their number.
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

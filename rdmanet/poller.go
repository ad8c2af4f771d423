package rdmanet

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/wait"
	"github.com/softvpi/softvpi/nd"
)

const (
	// firstDepth is how many results a poller's queue holds at first; it doubles as connections come.
	firstDepth = 1 << 12
	// resizePatience limits how long a new connection waits until results from before the last resize are taken.
	resizePatience = 2 * time.Second
)

// poller takes the results of all connections of an adapter. It has no goroutine of its own: one of those that wait
// in Read, Write or Close leads (wait.go).
type poller struct {
	adapter *nd.Adapter
	queue   *nd.CompletionQueue
	uses    int // under the lock of pollers

	taking  sync.Mutex // held while results are taken and handled; before the lock of a Conn
	results [64]nd.Result
	spin    spin

	mu      sync.Mutex
	depth   int
	used    int // of depth
	conns   map[*Conn]struct{}
	err     error     // why there are no more results
	led     bool      // somebody leads, or has been told to
	waiting []*waiter // those who wait and do not lead, the last one first

	asleep atomic.Pointer[waiter] // the leader, if it sleeps or is about to
}

// pollers are the pollers of the adapters that have connections or listeners.
var pollers = struct {
	mu   sync.Mutex
	list map[*nd.Adapter]*poller
}{list: map[*nd.Adapter]*poller{}}

// openPoller returns the adapter's poller for one more user, who calls release.
func openPoller(a *nd.Adapter) (*poller, error) {
	pollers.mu.Lock()
	defer pollers.mu.Unlock()
	if p := pollers.list[a]; p != nil && p.failure() == nil {
		p.uses++
		return p, nil
	}
	q, err := a.CreateCompletionQueue(firstDepth)
	if err != nil {
		return nil, err
	}
	p := &poller{adapter: a, queue: q, uses: 1, depth: firstDepth, conns: map[*Conn]struct{}{}}
	pollers.list[a] = p
	return p, nil
}

// release ends a use; the last one closes the queue.
func (p *poller) release() error {
	pollers.mu.Lock()
	defer pollers.mu.Unlock()
	if p.uses--; p.uses > 0 {
		return nil
	}
	if pollers.list[p.adapter] == p {
		delete(pollers.list, p.adapter)
	}
	return p.queue.Close()
}

// join adds a connection that may have this many requests outstanding; leave removes it.
func (p *poller) join(c *Conn, requests int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	if err := p.fit(p.used + requests); err != nil {
		return err
	}
	p.used += requests
	p.conns[c] = struct{}{}
	return nil
}

func (p *poller) leave(c *Conn, requests int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.conns[c]; ok {
		delete(p.conns, c)
		p.used -= requests
	}
}

// fit makes the queue hold n results. The caller holds the lock.
func (p *poller) fit(n int) error {
	if n <= p.depth {
		return nil
	}
	depth := max(n, 2*p.depth)
	if most := p.adapter.Device().Limits().MaxCQDepth; depth > most {
		depth = max(n, most) // more than the adapter offers: it says so
	}
	for end := time.Now().Add(resizePatience); ; {
		err := p.queue.Resize(depth)
		if err == nil {
			p.depth = depth
			return nil
		}
		if !errors.Is(err, nd.ErrBufferOverflow) || time.Now().After(end) {
			return err
		}
		if _, err := p.take(); err != nil { // results from before the last resize
			return err
		}
		wait.YieldGoroutines()
	}
}

func (p *poller) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// fail ends all connections: there are no more results.
func (p *poller) fail(err error) {
	p.mu.Lock()
	if p.err == nil {
		p.err = err
	}
	conns := make([]*Conn, 0, len(p.conns))
	for c := range p.conns {
		conns = append(conns, c)
	}
	p.mu.Unlock()
	for _, c := range conns {
		c.fail(err)
	}
}

// take takes and handles the results that are available, and returns their number.
func (p *poller) take() (int, error) {
	p.taking.Lock()
	defer p.taking.Unlock()
	n, err := p.queue.GetResults(p.results[:])
	for i := range p.results[:n] {
		r := &p.results[i]
		if c, ok := r.QueuePairContext.(*Conn); ok { // nil: its queue pair is closed
			p.spin.got(c)
			c.result(r)
		}
	}
	return n, err
}

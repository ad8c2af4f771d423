package rdmanet

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/softvpi/softvpi/nd"
	"github.com/softvpi/softvpi/verbs"
)

const (
	// firstDepth is how many results a poller's queue holds at first; it doubles as connections come.
	firstDepth = 1 << 12
	// resizePatience limits how long a new connection waits until results from before the last resize are taken.
	resizePatience = 2 * time.Second
)

// poller takes the results of all connections of an adapter: one goroutine sleeps for all of them, and passes what
// arrives to those that read and write.
type poller struct {
	adapter *nd.Adapter
	queue   *nd.CompletionQueue
	done    chan struct{} // closed when the goroutine has ended
	uses    int           // under the lock of pollers

	taking  sync.Mutex // held while results are taken and handled; before the lock of a Conn
	results [64]nd.Result

	mu    sync.Mutex
	depth int
	used  int // of depth
	conns map[*Conn]struct{}
	err   error // why the goroutine has ended
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
	p := &poller{adapter: a, queue: q, done: make(chan struct{}), uses: 1, depth: firstDepth, conns: map[*Conn]struct{}{}}
	pollers.list[a] = p
	go p.run()
	return p, nil
}

// release ends a use; the last one ends the poller.
func (p *poller) release() error {
	pollers.mu.Lock()
	defer pollers.mu.Unlock()
	if p.uses--; p.uses > 0 {
		return nil
	}
	if pollers.list[p.adapter] == p {
		delete(pollers.list, p.adapter)
	}
	err := p.queue.Close() // it wakes the goroutine
	<-p.done
	return err
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
		runtime.Gosched()
	}
}

func (p *poller) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// run takes results until the queue is closed or broken.
func (p *poller) run() {
	defer close(p.done)
	err := p.loop()
	p.mu.Lock()
	p.err = err
	conns := p.conns
	p.conns = map[*Conn]struct{}{}
	p.mu.Unlock()
	for c := range conns {
		c.fail(err)
	}
}

func (p *poller) loop() error {
	cq := p.queue.CQ()
	for {
		n, err := p.take()
		if err != nil {
			return err
		}
		if n > 0 {
			runtime.Gosched() // to those who got something: what they send is answered meanwhile
			continue
		}
		ticket := cq.Arm(verbs.NotifyAny)
		if n, err = p.take(); err != nil {
			return err
		}
		if n > 0 {
			runtime.Gosched()
			continue
		}
		if err := cq.Sleep(context.Background(), ticket); err != nil {
			return err
		}
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
			c.result(r)
		}
	}
	return n, err
}

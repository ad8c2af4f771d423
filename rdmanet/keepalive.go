package rdmanet

import (
	"net"
	"sync"
	"time"
)

// defaultKeepAlive is how long a connection is idle before a probe, as for net.TCPConn.
const defaultKeepAlive = 15 * time.Second

// keepAlive probes a connection on which nothing has arrived for a period. A probe is an RDMA write of no bytes: the
// peer's adapter acknowledges it, its program notices nothing (IBA 9.7.5.1.4: an acknowledgement that does not come
// ends the connection after some retries).
type keepAlive struct {
	mu     sync.Mutex
	on     bool
	period time.Duration
	timer  *time.Timer // nil: not on, or closed
	ended  bool
}

// start begins with a period as configured: 0 means the default, a negative one means no probes.
func (k *keepAlive) start(period time.Duration, probe func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on, k.period = period >= 0, period
	if period <= 0 {
		k.period = defaultKeepAlive
	}
	k.timer = time.AfterFunc(k.period, func() {
		probe()
		k.again()
	})
	k.apply()
}

// again waits for another period.
func (k *keepAlive) again() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.apply()
}

// apply starts or stops the timer. The caller holds the lock.
func (k *keepAlive) apply() {
	switch {
	case k.timer == nil: // not connected yet
	case k.on && !k.ended:
		k.timer.Reset(k.period)
	default:
		k.timer.Stop()
	}
}

// end stops it for good.
func (k *keepAlive) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	k.apply()
}

// SetKeepAlive switches probes on or off; they are on by default. They find out that the peer's host is gone, although
// this side sends nothing: reads and writes then fail with syscall.ETIMEDOUT.
func (c *Conn) SetKeepAlive(keepalive bool) error {
	return c.setKeepAlive(func(k *keepAlive) { k.on = keepalive })
}

// SetKeepAlivePeriod sets how long nothing must have arrived before a probe is sent. Zero means the default, 15 s; a
// negative period changes nothing.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error {
	return c.setKeepAlive(func(k *keepAlive) {
		switch {
		case d > 0:
			k.period = d
		case d == 0:
			k.period = defaultKeepAlive
		}
	})
}

func (c *Conn) setKeepAlive(change func(*keepAlive)) error {
	select {
	case <-c.closing:
		return c.opError("set", net.ErrClosed)
	default:
	}
	k := &c.alive
	k.mu.Lock()
	defer k.mu.Unlock()
	change(k)
	k.apply()
	return nil
}

// probe is called after each period: it sends a probe if nothing was heard of the peer meanwhile.
func (c *Conn) probe() {
	p := c.end.poller
	if _, err := p.take(); err != nil { // perhaps nobody reads or writes
		p.fail(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	heard := c.heard
	c.heard = false
	if heard || c.probing || c.err != nil {
		return
	}
	// The sends before it have finished when it has.
	if err := c.end.qp.Write(c.sent, nil, 0, 0, 0); err != nil {
		c.breakDown(err)
		return
	}
	c.probing = true
	c.outstanding++
}

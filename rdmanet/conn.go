package rdmanet

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/softvpi/softvpi/nd"
)

// Addr is the address of one end: an adapter's address and a port of the RDMA port space.
type Addr struct{ netip.AddrPort }

// Network returns "rdma".
func (Addr) Network() string { return "rdma" }

// Conn is a connection. It implements net.Conn; all methods may be called concurrently.
type Conn struct {
	end    *endpoint
	local  Addr
	remote Addr

	readMu  sync.Mutex // one Read at a time
	writeMu sync.Mutex // one Write at a time
	read    *deadline
	write   *deadline

	readable *waiter // for Read
	writable *waiter // for Write and Close

	mu          sync.Mutex
	inbox       []message // received but not yet read, oldest first
	offset      int       // bytes of the oldest that have been read
	credits     int       // free receive buffers of the peer
	give        int       // own receive buffers that are free but not yet announced to the peer
	sent, done  uint64    // data messages, those sent and those whose buffers are free again; buffers are used in turn
	outstanding int       // sends that have not yet given the result that they are to give
	heard       bool      // of the peer, since keepAlive last looked
	probing     bool      // a probe of keepAlive has no result yet
	finished    bool      // the peer sends no more data
	closedWrite bool
	err         error // the connection is broken

	alive keepAlive

	closing   chan struct{} // closed by Close
	closeOnce sync.Once
	closeErr  error
}

const (
	// controlBuffers are receive buffers in addition to those for data: the peer may send two credit
	// messages before it needs credits itself, and a finish.
	controlBuffers = 4
	// controlSends bounds the sends that carry no data, for the same reason.
	controlSends = 8

	lingerTime     = 3 * time.Second
	disconnectTime = time.Second
)

// newConn creates one end of a connection that is yet to be set up; receives are posted.
func newConn(ctx context.Context, a *nd.Adapter, b Buffers) (*Conn, error) {
	c := &Conn{
		end:      &endpoint{buffers: b.Count, size: b.Size},
		readable: newWaiter(), writable: newWaiter(), closing: make(chan struct{}),
	}
	c.read, c.write = newDeadline(c.readable.wake), newDeadline(c.writable.wake)
	if err := c.end.open(ctx, a, c); err != nil {
		_ = c.end.close(c)
		return nil, err
	}
	return c, nil
}

// established completes the setup: the ends have agreed. Messages of the peer may have arrived already. The period is
// that of keepAlive.
func (c *Conn) established(peer hello, period time.Duration) error {
	connector := c.end.connector
	local, err := connector.GetLocalAddress()
	if err != nil {
		return err
	}
	remote, err := connector.GetPeerAddress()
	if err != nil {
		return err
	}
	c.local, c.remote = Addr{local}, Addr{remote}
	c.alive.start(period, c.probe)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end.sendSize = min(c.end.size, int(peer.size))
	c.credits += int(peer.buffers)
	return nil
}

// result handles one result.
func (c *Conn) result(r *nd.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handle(r)
}

// fail breaks the connection; the first error is kept.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breakDown(err)
}

func (c *Conn) breakDown(err error) {
	if c.err == nil {
		c.err = err
	}
	c.readable.wake()
	c.writable.wake()
}

// handle handles one result. The caller holds the lock.
func (c *Conn) handle(r *nd.Result) {
	if r.RequestType == nd.RequestReceive {
		c.received(r)
		return
	}
	c.outstanding--
	if r.Status != nd.StatusSuccess {
		c.breakDown(c.lost(r))
		return
	}
	c.heard = true // it has acknowledged
	if r.RequestType == nd.RequestWrite {
		c.probing = false
	}
	if r.RequestContext > c.done { // sends finish in the order in which they were posted
		c.done = r.RequestContext
		c.writable.wake()
	}
	if c.closedWrite && c.outstanding == 0 {
		c.writable.wake() // Close waits for that
	}
}

// lost returns the error for a result showing that the connection is gone.
func (c *Conn) lost(r *nd.Result) error {
	switch r.Status {
	case nd.StatusCanceled: // flushed: the peer disconnected
		return syscall.ECONNRESET
	case nd.StatusIOTimeout: // it does not acknowledge any more
		return syscall.ETIMEDOUT
	}
	return r.Err()
}

// Close ends the connection. Waiting reads and writes return net.ErrClosed; data accepted by Write is
// delivered first, unless the peer does not take it for some seconds.
func (c *Conn) Close() error {
	c.closeOnce.Do(func() {
		close(c.closing)
		c.alive.end()
		c.readable.wake()
		c.writable.wake()
		c.readMu.Lock()
		defer c.readMu.Unlock()
		c.writeMu.Lock()
		defer c.writeMu.Unlock()
		c.closeErr = c.shutdown()
	})
	return c.opError("close", c.closeErr)
}

func (c *Conn) shutdown() error {
	c.read.set(time.Time{})
	c.write.set(time.Time{})
	_ = c.finish()
	c.write.set(time.Now().Add(lingerTime))
	defer c.write.set(time.Time{})
	for !c.settled() && !c.write.over() {
		c.end.poller.wait(c.writable)
	}
	ctx, cancel := context.WithTimeout(context.Background(), disconnectTime)
	defer cancel()
	_ = c.end.connector.Disconnect(ctx) // the peer may have disconnected first, or be gone
	return c.end.close(c)
}

// settled reports whether no send is outstanding any more, or the connection is broken.
func (c *Conn) settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outstanding == 0 || c.err != nil
}

// LocalAddr returns this side's address.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the peer's address.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines; see net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets when Read gives up; the zero time means never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(c.read, t) }

// SetWriteDeadline sets when Write gives up; the zero time means never.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(c.write, t) }

func (c *Conn) setDeadline(d *deadline, t time.Time) error {
	select {
	case <-c.closing:
		return c.opError("set", net.ErrClosed)
	default:
	}
	d.set(t)
	return nil
}

// opError converts an error to the net package's form; nil and io.EOF are kept.
func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "rdma", Source: c.local, Addr: c.remote, Err: err}
}

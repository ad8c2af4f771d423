package rdmanet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/softvpi/softvpi/nd"
)

// Addr is the address of an end: an adapter's address and a port of the RDMA
// port space.
type Addr struct{ netip.AddrPort }

// Network returns "rdma".
func (Addr) Network() string { return "rdma" }

// Conn is a connection. It implements net.Conn; all methods may be called at the
// same time.
type Conn struct {
	end    *endpoint
	local  Addr
	remote Addr

	readMu  sync.Mutex // one Read at a time
	writeMu sync.Mutex // one Write at a time
	read    *deadline
	write   *deadline

	readable chan struct{} // signals Read: something changed
	writable chan struct{} // signals Write

	mu          sync.Mutex
	inbox       []message // received and not read, oldest first
	offset      int       // bytes of the oldest that were read
	credits     int       // receive buffers of the peer that are free
	give        int       // own receive buffers that are free and the peer does not know of
	free        []int     // own send buffers
	outstanding int       // sends without a result
	idle        chan struct{}
	finished    bool // the peer sends no more
	closedWrite bool
	err         error // the connection is broken

	closing   chan struct{} // closed by Close
	closeOnce sync.Once
	closeErr  error
	stop      context.CancelFunc
	stopped   chan struct{}
}

// message is data in a receive buffer.
type message struct{ buffer, length int }

const (
	// controlBuffers are receive buffers beyond those for data: the peer may send
	// two credit messages before it needs credits itself, and a finish.
	controlBuffers = 4
	// controlSends bound the sends that carry no data, as the same reckoning does.
	controlSends = 8

	lingerTime     = 3 * time.Second
	disconnectTime = time.Second

	controlContext = 1 << 32 // request context of sends without a buffer
)

func newConn(e *endpoint, peer hello, local, remote netip.AddrPort) *Conn {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Conn{
		end: e, local: Addr{local}, remote: Addr{remote},
		read: newDeadline(), write: newDeadline(),
		readable: make(chan struct{}, 1), writable: make(chan struct{}, 1),
		credits: int(peer.buffers), idle: make(chan struct{}),
		closing: make(chan struct{}), stop: cancel, stopped: make(chan struct{}),
	}
	e.sendSize = min(e.size, int(peer.size))
	for i := range e.buffers {
		c.free = append(c.free, i)
	}
	go c.run(ctx)
	return c
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// run takes results until the connection is torn down.
func (c *Conn) run(ctx context.Context) {
	defer close(c.stopped)
	var results [32]nd.Result
	for {
		n, err := c.end.cq.WaitResults(ctx, results[:])
		if err != nil {
			c.fail(err)
			return
		}
		c.mu.Lock()
		for i := range results[:n] {
			c.handle(&results[i])
		}
		c.mu.Unlock()
	}
}

// fail breaks the connection; the first error counts.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breakDown(err)
}

func (c *Conn) breakDown(err error) {
	if c.err == nil {
		c.err = err
	}
	c.settle()
	signal(c.readable)
	signal(c.writable)
}

// settle tells Close when no send is outstanding, or none will ever end.
func (c *Conn) settle() {
	if c.outstanding == 0 || c.err != nil {
		select {
		case <-c.idle:
		default:
			close(c.idle)
		}
	}
}

// handle takes one result; the lock is held.
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
	if r.RequestContext < controlContext {
		c.free = append(c.free, int(r.RequestContext))
		signal(c.writable)
	}
	if c.closedWrite {
		c.settle()
	}
}

// lost is the error of a result that says that the connection is gone.
func (c *Conn) lost(r *nd.Result) error {
	if r.Status == nd.StatusCanceled { // flushed: the peer disconnected
		return syscall.ECONNRESET
	}
	return r.Err()
}

func (c *Conn) received(r *nd.Result) {
	if r.Status != nd.StatusSuccess {
		c.breakDown(c.lost(r))
		return
	}
	buffer := int(r.RequestContext)
	h, err := parseHeader(c.end.receiveBuffer(buffer)[:r.BytesTransferred])
	if err != nil {
		c.breakDown(fmt.Errorf("rdmanet: %w", err))
		return
	}
	if c.credits += int(h.credits); c.credits > maxBuffers {
		c.breakDown(errors.New("rdmanet: the peer gave more credits than it has buffers"))
		return
	}
	if h.credits > 0 {
		signal(c.writable)
	}
	if h.kind == kindData {
		if len(c.inbox) >= c.end.buffers || c.finished {
			c.breakDown(errors.New("rdmanet: the peer sent data that it had no credit for"))
			return
		}
		c.inbox = append(c.inbox, message{buffer, int(r.BytesTransferred) - headerSize})
		signal(c.readable)
		return
	}
	if h.kind == kindFinish {
		c.finished = true
		signal(c.readable)
	}
	if err := c.end.postReceive(buffer); err != nil {
		c.breakDown(err)
	}
}

// Read reads data that has arrived, waiting for some until the read deadline.
// io.EOF comes when the peer closed its side and everything was read.
func (c *Conn) Read(p []byte) (int, error) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	for {
		n, err := c.take(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, c.opError("read", err)
		}
		select {
		case <-c.readable:
		case <-c.read.channel():
		case <-c.closing:
		}
	}
}

// take moves what has arrived into p.
func (c *Conn) take(p []byte) (int, error) {
	select {
	case <-c.closing:
		return 0, net.ErrClosed
	default:
	}
	if c.read.over() {
		return 0, os.ErrDeadlineExceeded
	}
	total := 0
	for total < len(p) {
		m, ok, err := c.oldest()
		if !ok {
			if total > 0 {
				return total, nil
			}
			return 0, err
		}
		data := c.end.receiveBuffer(m.buffer)[headerSize : headerSize+m.length]
		n := copy(p[total:], data[c.offset:])
		total += n
		if err := c.consumed(m, n); err != nil {
			return total, nil // the next Read tells
		}
	}
	return total, nil
}

// oldest returns the oldest message that was not read, else why there is none.
func (c *Conn) oldest() (message, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.inbox) > 0 {
		return c.inbox[0], true, nil
	}
	if c.finished {
		return message{}, false, io.EOF
	}
	return message{}, false, c.err
}

// consumed notes that n more bytes of the oldest message were read; a buffer that
// is empty is posted again and its credit given back.
func (c *Conn) consumed(m message, n int) error {
	c.offset += n
	if c.offset < m.length {
		return nil
	}
	c.offset = 0
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inbox = append(c.inbox[:0], c.inbox[1:]...)
	if c.err != nil || c.finished {
		return nil // nothing comes any more
	}
	if err := c.end.postReceive(m.buffer); err != nil {
		c.breakDown(err)
		return err
	}
	c.give++
	if c.give*2 >= c.end.buffers {
		return c.control(kindCredit)
	}
	return nil
}

// control sends a message without data; the lock is held.
func (c *Conn) control(k kind) error {
	err := c.end.sendControl(header{kind: k, credits: uint32(c.give)})
	if err != nil {
		c.breakDown(err)
		return err
	}
	c.give = 0
	c.outstanding++
	return nil
}

// Write sends p. It returns when p is copied and on its way; it waits, until the
// write deadline, while the peer reads more slowly than this side writes.
func (c *Conn) Write(p []byte) (int, error) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	total := 0
	for {
		buffer, err := c.reserve(len(p) > total)
		if err != nil || total == len(p) {
			return total, c.opError("write", err)
		}
		if buffer < 0 {
			select {
			case <-c.writable:
			case <-c.write.channel():
			case <-c.closing:
			}
			continue
		}
		n, err := c.post(buffer, p[total:])
		total += n
		if err != nil {
			return total, c.opError("write", err)
		}
	}
}

// reserve takes a send buffer and a credit where both are there, -1 where not.
func (c *Conn) reserve(want bool) (int, error) {
	select {
	case <-c.closing:
		return -1, net.ErrClosed
	default:
	}
	if c.write.over() {
		return -1, os.ErrDeadlineExceeded
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closedWrite:
		return -1, syscall.EPIPE
	case c.err != nil:
		return -1, c.err
	case !want || c.credits == 0 || len(c.free) == 0:
		return -1, nil
	}
	last := len(c.free) - 1
	buffer := c.free[last]
	c.free = c.free[:last]
	c.credits--
	return buffer, nil
}

// post sends the first bytes of p from a reserved buffer.
func (c *Conn) post(buffer int, p []byte) (int, error) {
	b := c.end.sendBuffer(buffer)
	n := copy(b[headerSize:c.end.sendSize], p)
	c.mu.Lock()
	defer c.mu.Unlock()
	header{kind: kindData, credits: uint32(c.give)}.put(b)
	if err := c.end.send(buffer, headerSize+n); err != nil {
		c.breakDown(err)
		return 0, err
	}
	c.give = 0
	c.outstanding++
	return n, nil
}

// CloseWrite ends this side's sending: the peer reads io.EOF after the data. It
// may still be read from.
func (c *Conn) CloseWrite() error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	select {
	case <-c.closing:
		return c.opError("close", net.ErrClosed)
	default:
	}
	return c.opError("close", c.finish())
}

// finish tells the peer that no more data comes.
func (c *Conn) finish() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closedWrite {
		return nil
	}
	c.closedWrite = true
	signal(c.writable)
	if c.err != nil {
		return c.err
	}
	return c.control(kindFinish)
}

// Close ends the connection. Reads and writes that wait return net.ErrClosed;
// data that Write took is delivered first, unless the peer has not taken it for
// some seconds.
func (c *Conn) Close() error {
	c.closeOnce.Do(func() {
		close(c.closing)
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
	c.mu.Lock()
	c.settle()
	c.mu.Unlock()
	linger := time.NewTimer(lingerTime)
	defer linger.Stop()
	select {
	case <-c.idle:
	case <-linger.C:
	}
	ctx, cancel := context.WithTimeout(context.Background(), disconnectTime)
	defer cancel()
	_ = c.end.connector.Disconnect(ctx) // the peer may have been first, or be gone
	c.stop()
	<-c.stopped
	return c.end.close()
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

// opError gives an error the form of the net package; nil and io.EOF stay.
func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "rdma", Source: c.local, Addr: c.remote, Err: err}
}

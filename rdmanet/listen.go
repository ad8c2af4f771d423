package rdmanet

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/softvpi/softvpi/nd"
)

// ListenConfig creates listeners. The zero value is ready to use.
type ListenConfig struct {
	// Adapter to listen on; nil: among those that nd.Open finds, the one that has the address.
	Adapter *nd.Adapter
	Buffers Buffers
	// KeepAlive is that of accepted connections, as in Dialer.
	KeepAlive time.Duration
	// Backlog is how many established connections may wait for Accept; 0: 128.
	Backlog int
}

// Listener accepts connections. It implements net.Listener.
type Listener struct {
	config   ListenConfig
	listener *nd.Listener
	adapter  *nd.Adapter
	addr     Addr
	ready    chan *Conn
	slots    chan struct{} // one for each connection being set up or waiting
	ctx      context.Context
	cancel   context.CancelFunc
	setups   sync.WaitGroup

	mu        sync.Mutex
	err       error
	closeOnce sync.Once
	closeErr  error
}

// setupTime is how long a peer may take to complete a connection.
const setupTime = 10 * time.Second

// Listen listens at address, "host:port"; with port 0 the adapter chooses one.
func Listen(address string) (*Listener, error) {
	return (&ListenConfig{}).Listen(context.Background(), address)
}

// Listen listens at address, "host:port"; with port 0 the adapter chooses one.
func (c *ListenConfig) Listen(ctx context.Context, address string) (*Listener, error) {
	candidates, err := resolve(ctx, "rdma", address)
	if err != nil {
		return nil, opError("listen", nil, err)
	}
	local := candidates[0]
	l, err := c.listen(ctx, local)
	if err != nil {
		return nil, opError("listen", Addr{local}, err)
	}
	return l, nil
}

func (c *ListenConfig) listen(ctx context.Context, local netip.AddrPort) (*Listener, error) {
	config := *c
	if err := config.Buffers.complete(); err != nil {
		return nil, err
	}
	if config.Backlog <= 0 {
		config.Backlog = 128
	}
	a := config.Adapter
	if a == nil {
		var err error
		if a, err = defaults.at(ctx, local.Addr()); err != nil {
			return nil, err
		}
	}
	nl, err := a.Listen(local, config.Backlog)
	if err != nil {
		return nil, err
	}
	bound, err := nl.GetLocalAddress()
	if err != nil {
		_ = nl.Close()
		return nil, err
	}
	l := &Listener{
		config: config, listener: nl, adapter: a, addr: Addr{bound},
		ready: make(chan *Conn, config.Backlog), slots: make(chan struct{}, config.Backlog),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.setups.Add(1)
	go l.run()
	return l, nil
}

// run takes requests and sets up each connection on its own goroutine, so that a slow peer does not hold
// up others.
func (l *Listener) run() {
	defer l.setups.Done()
	for {
		select {
		case l.slots <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		connector, err := l.adapter.CreateConnector()
		if err == nil {
			err = l.listener.GetConnectionRequest(l.ctx, connector)
		}
		if err != nil {
			l.stop(err)
			return
		}
		l.setups.Add(1)
		go func() {
			defer l.setups.Done()
			c, err := l.setUp(connector)
			if err != nil {
				_ = connector.Close()
				<-l.slots
				return
			}
			l.ready <- c // never blocks: a slot was taken
		}()
	}
}

func (l *Listener) setUp(connector *nd.Connector) (*Conn, error) {
	ctx, cancel := context.WithTimeout(l.ctx, setupTime)
	defer cancel()
	private, err := connector.GetPrivateData()
	if err != nil {
		return nil, err
	}
	peer, err := parseHello(private)
	if err != nil {
		_ = connector.Reject([]byte(err.Error()))
		return nil, err
	}
	c, err := newConn(ctx, l.adapter, l.config.Buffers)
	if err != nil {
		return nil, err
	}
	_ = c.end.connector.Close()
	c.end.connector = connector
	p := noReads
	p.PrivateData = c.end.hello()
	err = connector.Accept(ctx, c.end.qp, p)
	if err == nil {
		err = c.established(peer, l.config.KeepAlive)
	}
	if err != nil {
		_ = c.end.close(c)
		return nil, err
	}
	return c, nil
}

// stop ends Accept with an error.
func (l *Listener) stop(err error) {
	l.mu.Lock()
	if l.err == nil {
		l.err = err
	}
	l.mu.Unlock()
	l.cancel()
}

// Accept returns the next connection. After Close it returns net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptConn()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// AcceptConn is Accept with the connection's own type.
func (l *Listener) AcceptConn() (*Conn, error) {
	select {
	case <-l.ctx.Done():
	default:
		select {
		case c := <-l.ready:
			<-l.slots
			return c, nil
		case <-l.ctx.Done():
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return nil, opError("accept", l.addr, l.err)
}

// Addr returns the address that the listener is bound to.
func (l *Listener) Addr() net.Addr { return l.addr }

// Close stops listening and closes the connections that were not accepted.
func (l *Listener) Close() error {
	l.closeOnce.Do(func() {
		l.stop(net.ErrClosed)
		l.closeErr = l.listener.Close()
		l.setups.Wait()
		for {
			select {
			case c := <-l.ready:
				_ = c.Close()
			default:
				return
			}
		}
	})
	if l.closeErr != nil {
		return opError("close", l.addr, l.closeErr)
	}
	return nil
}

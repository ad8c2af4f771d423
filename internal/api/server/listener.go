package server

import (
	"net"
	"sync"
	"sync/atomic"
)

// limitListener limits the number of open connections; more wait to be accepted.
type limitListener struct {
	net.Listener
	places chan struct{}
	done   chan struct{}
	once   sync.Once
	open   *atomic.Int64 // number of open connections
}

func newLimitListener(l net.Listener, n int, open *atomic.Int64) *limitListener {
	return &limitListener{Listener: l, places: make(chan struct{}, n), done: make(chan struct{}), open: open}
}

// Accept waits for a free place, then for a connection.
func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	l.open.Add(1)
	return &limitedConn{Conn: c, free: func() {
		l.open.Add(-1)
		<-l.places
	}}, nil
}

// Close also ends an Accept that waits for a place.
func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// limitedConn returns its place when it is closed.
type limitedConn struct {
	net.Conn
	once sync.Once
	free func()
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.free)
	return err
}

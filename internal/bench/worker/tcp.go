package worker

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// tcpEnd is one side of many TCP connections.
type tcpEnd struct {
	ls    []net.Listener
	done  chan error
	conns []net.Conn
}

// tcpPorts is how many ports the connections are spread over: with a single port, most of the time is
// spent finding a free port on the other side.
const tcpPorts = 16

// room returns how many connections the process may hold.
func (t *tcpEnd) room() int { return fileLimit() - 64 }

// TCPListenArgs request that connections be accepted, with concurrency connecting.
type TCPListenArgs struct {
	Addr        netip.Addr
	Connections int
}

func (t *tcpEnd) listen(a TCPListenArgs) (at []netip.AddrPort, err error) {
	t.done, t.conns = make(chan error, 1), make([]net.Conn, a.Connections)
	for range tcpPorts {
		l, err := net.Listen("tcp", netip.AddrPortFrom(a.Addr, 0).String())
		if err != nil {
			return nil, err
		}
		t.ls, at = append(t.ls, l), append(at, l.Addr().(*net.TCPAddr).AddrPort())
	}
	go func() {
		t.done <- each(a.Connections, func(n int) (err error) {
			t.conns[n], err = t.ls[n%tcpPorts].Accept()
			return err
		})
	}()
	return at, nil
}

// TCPConnectArgs request connections, with concurrency connecting.
type TCPConnectArgs struct {
	Remote      []netip.AddrPort // used in turn
	Connections int
}

// connect returns the seconds that it took.
func (t *tcpEnd) connect(a TCPConnectArgs) (float64, error) {
	t.conns = make([]net.Conn, a.Connections)
	start := time.Now()
	err := each(a.Connections, func(n int) (err error) {
		t.conns[n], err = net.Dial("tcp", a.Remote[n%len(a.Remote)].String())
		return err
	})
	return time.Since(start).Seconds(), err
}

// drop closes all connections with a reset, so that no port lingers.
func (t *tcpEnd) drop() {
	for _, c := range t.conns {
		if c != nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	}
	for _, l := range t.ls {
		_ = l.Close()
	}
	*t = tcpEnd{}
}

// TCPPingArgs are PingArgs over a TCP connection of its own, with plain system calls, blocking or polling.
type TCPPingArgs struct {
	PingArgs
	Addr netip.AddrPort // of the side that answers
}

// wire is a TCP connection without the runtime's poller.
type wire interface {
	readFull(b []byte) error
	write(b []byte) error
	close()
}

func tcpPing(a TCPPingArgs) (Latency, error) {
	c, err := dialWire(a.Addr, a.Polling)
	if err != nil {
		return Latency{}, err
	}
	defer c.close()
	b := make([]byte, a.Bytes)
	trips := make([]time.Duration, 0, maxTrips)
	start := time.Now()
	for before := start; before.Sub(start).Seconds() < a.Seconds && len(trips) < maxTrips; {
		if err := errors.Join(c.write(b), c.readFull(b)); err != nil {
			return Latency{}, err
		}
		now := time.Now()
		trips = append(trips, now.Sub(before))
		before = now
	}
	return latencyOf(trips[min(len(trips)/10, 100):]), nil
}

// tcpPong serves one connection until it ends.
func tcpPong(a TCPPingArgs) (struct{}, error) {
	c, err := acceptWire(a.Addr, a.Polling)
	if err != nil {
		return struct{}{}, fmt.Errorf("accept: %w", err)
	}
	defer c.close()
	b := make([]byte, a.Bytes)
	for {
		if err := c.readFull(b); errors.Is(err, errEnd) {
			return struct{}{}, nil
		} else if err != nil {
			return struct{}{}, err
		}
		if err := c.write(b); err != nil {
			return struct{}{}, err
		}
	}
}

var errEnd = errors.New("the peer has closed the connection")

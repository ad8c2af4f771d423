package cable

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// portableSocket is a socket for every system: a goroutine reads it.
type portableSocket struct {
	conn   *net.UDPConn
	notify func()
	ended  sync.WaitGroup

	mu     sync.Mutex
	come   []arrival
	out    []arrival // being handed out
	spare  [][]byte
	closed bool
}

type arrival struct {
	from netip.AddrPort
	b    []byte
}

// portableQueue is how many datagrams can wait before more are lost.
const portableQueue = 128

func openPortable(at netip.AddrPort, notify func()) (socketSystem, netip.AddrPort, error) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, at, err
	}
	_ = c.SetReadBuffer(socketBuffer) // smaller if the system permits no more
	_ = c.SetWriteBuffer(socketBuffer)
	if notify == nil {
		notify = func() {}
	}
	s := &portableSocket{conn: c, notify: notify}
	s.ended.Go(s.read)
	return s, c.LocalAddr().(*net.UDPAddr).AddrPort(), nil
}

func (s *portableSocket) read() {
	for {
		b := s.buf()
		n, from, err := s.conn.ReadFromUDPAddrPort(b[:cap(b)])
		s.mu.Lock()
		switch {
		case s.closed:
			s.mu.Unlock()
			return
		case err != nil: // about an earlier datagram, as Windows reports them
			s.spare = append(s.spare, b)
			s.mu.Unlock()
			if !errors.Is(err, net.ErrClosed) {
				time.Sleep(time.Millisecond)
			}
			continue
		case len(s.come) >= portableQueue || n == 0:
			s.spare = append(s.spare, b)
		default:
			s.come = append(s.come, arrival{netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), b[:n]})
		}
		s.mu.Unlock()
		s.notify()
	}
}

func (s *portableSocket) buf() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.spare); n > 0 {
		b := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return b[:0]
	}
	return make([]byte, 0, MaxDatagram+1)
}

func (s *portableSocket) send(to netip.AddrPort, b []byte, size int) int {
	all := len(b)
	for len(b) > 0 {
		n := min(size, len(b))
		_, _ = s.conn.WriteToUDPAddrPort(b[:n], to) // one that the system refuses is lost
		b = b[n:]
	}
	return all
}

func (s *portableSocket) receive(take func(netip.AddrPort, []byte)) int {
	s.mu.Lock()
	s.out, s.come = s.come, s.out[:0]
	s.mu.Unlock()
	for i := range s.out {
		take(s.out[i].from, s.out[i].b)
	}
	n := len(s.out)
	s.mu.Lock()
	for i := range s.out {
		s.spare = append(s.spare, s.out[i].b)
	}
	clear(s.out)
	s.mu.Unlock()
	return n
}

func (s *portableSocket) descriptor() int { return -1 }

// buffer returns the size of the queue, into which the socket is read all the time.
func (s *portableSocket) buffer() int { return portableQueue * minDatagram }

func (s *portableSocket) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.conn.Close()
	s.ended.Wait()
}

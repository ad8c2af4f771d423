package udp

import (
	"net"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/softvpi/softvpi/internal/frame"
)

// portableSocket is a socket that sends. Nobody reads those of the pool: what arrives there fills a small
// buffer and is then dropped by the system.
type portableSocket struct {
	conn  *net.UDPConn
	class uint8 // traffic class currently set
	hops  uint8 // hop limit currently set, 0: the system's default
}

// bindSource opens the socket of a slot, which sends from port.
func (l *portableLink) bindSource(slot int, port uint16) error {
	conn, err := listen(l.cfg.Addr, port)
	if err != nil {
		return err
	}
	_ = conn.SetReadBuffer(sourceBuffer) // a larger one only costs memory
	_ = conn.SetWriteBuffer(defaultSendBuffer)
	for slot >= len(l.source) {
		l.source = append(l.source, nil)
	}
	l.source[slot] = &portableSocket{conn: conn}
	return nil
}

// unbindSource closes the socket of a slot.
func (l *portableLink) unbindSource(slot int) {
	l.source[slot].conn.Close()
	l.source[slot] = nil
}

// socket returns the socket of a path.
func (l *portableLink) socket(i uint16) *portableSocket {
	if i == 0 || int(i) > len(l.source) || l.source[i-1] == nil {
		return &l.sender
	}
	return l.source[i-1]
}

// set sets the traffic class and the hop limit of the next packets unless they are already set.
func (s *portableSocket) set(r *frame.Route, v4 bool) {
	hops := frame.Hops(r.HopLimit)
	if s.class == r.TrafficClass && s.hops == hops {
		return
	}
	s.class, s.hops = r.TrafficClass, hops // even on failure: a platform that cannot will not learn
	if v4 {
		c := ipv4.NewConn(s.conn)
		_, _, _ = c.SetTOS(int(s.class)), c.SetTTL(int(hops)), ipv4.NewPacketConn(s.conn).SetMulticastTTL(int(hops))
		return
	}
	c := ipv6.NewConn(s.conn)
	_, _, _ = c.SetTrafficClass(int(s.class)), c.SetHopLimit(int(hops)), ipv6.NewPacketConn(s.conn).SetMulticastHopLimit(int(hops))
}

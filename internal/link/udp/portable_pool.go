package udp

import (
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/softvpi/softvpi/internal/link"
)

// portableSocket is a socket that sends. Nobody reads those of the pool: what arrives there fills a small
// buffer and is then dropped by the system.
type portableSocket struct {
	conn  *net.UDPConn
	class uint8 // traffic class currently set
}

// bindSource adds a socket that sends from port.
func (l *portableLink) bindSource(port uint16) error {
	conn, err := listen(l.cfg.Addr, port)
	if err != nil {
		return err
	}
	_ = conn.SetReadBuffer(sourceBuffer) // a larger one only costs memory
	_ = conn.SetWriteBuffer(defaultSendBuffer)
	l.source = append(l.source, portableSocket{conn: conn})
	return nil
}

// socket returns the socket of a Route.Socket.
func (l *portableLink) socket(i uint8) *portableSocket {
	if i == 0 || int(i) > len(l.source) {
		return &l.sender
	}
	return &l.source[i-1]
}

// setTrafficClass sets the traffic class of the next packets unless it is already set.
func (s *portableSocket) setTrafficClass(class uint8, v4 bool) {
	if s.class == class {
		return
	}
	s.class = class // even on failure: a platform that cannot will not learn
	if v4 {
		_ = ipv4.NewConn(s.conn).SetTOS(int(class))
	} else {
		_ = ipv6.NewConn(s.conn).SetTrafficClass(int(class))
	}
}

// Join implements link.Multicaster. Package net binds a group's socket to every address of the host, which
// conflicts with the port's own socket: there is no multicast here.
func (l *portableLink) Join(group netip.Addr) error {
	return fmt.Errorf("udp link: group %v: %w", group, link.ErrNoMulticast)
}

// Leave implements link.Multicaster.
func (l *portableLink) Leave(group netip.Addr) error {
	return fmt.Errorf("udp link: group %v: %w", group, link.ErrNoMulticast)
}

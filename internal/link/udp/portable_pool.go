package udp

import (
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// portableSocket is a socket that sends. Nobody reads those of the pool: what arrives at
// them fills a small buffer and is then dropped by the system.
type portableSocket struct {
	conn  *net.UDPConn
	class uint8 // traffic class that is set
}

// bindSource adds a socket that sends from port.
func (l *portableLink) bindSource(port uint16) error {
	conn, err := net.ListenUDP(network(l.cfg.Addr), net.UDPAddrFromAddrPort(netip.AddrPortFrom(l.cfg.Addr, port)))
	if err != nil {
		return err
	}
	_ = conn.SetReadBuffer(sourceBuffer) // a larger one costs memory, no more
	_ = conn.SetWriteBuffer(defaultSendBuffer)
	l.source = append(l.source, portableSocket{conn: conn})
	return nil
}

// socket is the one of a Route.Socket.
func (l *portableLink) socket(i uint8) *portableSocket {
	if i == 0 || int(i) > len(l.source) {
		return &l.sender
	}
	return &l.source[i-1]
}

// setTrafficClass sets what leaves with the next packets, where it is not set already.
func (s *portableSocket) setTrafficClass(class uint8, v4 bool) {
	if s.class == class {
		return
	}
	s.class = class // also where it fails: a platform that cannot will not learn
	if v4 {
		_ = ipv4.NewConn(s.conn).SetTOS(int(class))
	} else {
		_ = ipv6.NewConn(s.conn).SetTrafficClass(int(class))
	}
}

// Join implements link.Multicaster.
func (l *portableLink) Join(addr netip.Addr) error {
	if l.closed.Load() {
		return net.ErrClosed
	}
	if !addr.IsMulticast() || addr.Is4() != l.cfg.Addr.Is4() {
		return fmt.Errorf("udp link: group %v: want a multicast address of the family of %v", addr, l.cfg.Addr)
	}
	if g := l.groups[addr]; g != nil {
		g.uses++
		return nil
	}
	if len(l.groups) == maxGroups {
		return fmt.Errorf("udp link: group %v: %d groups are joined already, the most there may be", addr, maxGroups)
	}
	ifi, ok := InterfaceOf(l.cfg.Addr)
	if !ok {
		return fmt.Errorf("udp link: group %v: no interface holds %v", addr, l.cfg.Addr)
	}
	at := net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, l.cfg.Port))
	conn, err := net.ListenMulticastUDP(network(addr), &ifi, at)
	if err != nil {
		return fmt.Errorf("udp link: join group %v: %w", addr, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.groups[addr] = &portableGroup{conn: conn, uses: 1}
	l.read(conn, addr)
	return nil
}

// Leave implements link.Multicaster.
func (l *portableLink) Leave(addr netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[addr]
	if g == nil {
		return fmt.Errorf("udp link: group %v was not joined", addr)
	}
	if g.uses--; g.uses == 0 {
		delete(l.groups, addr)
		return g.conn.Close()
	}
	return nil
}

package ibsim

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// DefaultPort is the default UDP port of the control socket; that of client n is n+1 higher.
const DefaultPort = 7070

type udpListener struct {
	*net.UDPConn
	at netip.AddrPort
}

// ListenUDP lets clients attach over UDP, those with IBSIM_SERVER_NAME set. Anybody who can reach the
// address can attach: the protocol has no authentication.
func ListenUDP(at netip.AddrPort) (Listener, error) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	return &udpListener{c, c.LocalAddr().(*net.UDPAddr).AddrPort()}, nil
}

func (l *udpListener) read(b []byte) (int, peer, error) { return l.ReadFrom(b) }

// reply answers; it ignores that a client has gone.
func (l *udpListener) reply(to peer, b []byte) { _, _ = l.WriteTo(b, to) }

func (l *udpListener) same(a, b peer) bool { return a.String() == b.String() }

func (l *udpListener) user(peer) uint32 { return 0 }

// open creates a socket at the port for the client's number, connected to its port id.
func (l *udpListener) open(number, id uint32, from peer) (socket, error) {
	port := int(l.at.Port()) + 1 + int(number)
	if port > 65535 || id == 0 || id > 65535 {
		return nil, fmt.Errorf("UDP ports %d and %d; allowed: 1 to 65535", port, id)
	}
	remote := *from.(*net.UDPAddr)
	remote.Port = int(id)
	c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(l.at.Addr(), uint16(port))), &remote)
	if err != nil {
		return nil, err
	}
	return udpSocket{c}, nil
}

// commands accepts none: anybody who can reach the address would have the user's rights.
func (l *udpListener) commands(*Server) {}

// alive returns true: whether a program on another machine is gone shows only when it is written to.
func (l *udpListener) alive(uint32) bool { return true }

// udpSocket is a data socket over UDP. Writing to it never waits for the client.
type udpSocket struct{ *net.UDPConn }

func (u udpSocket) start(s *Server, c *client) { s.work.Go(func() { u.receive(s, c) }) }

// receive handles what the client sends until the socket is closed.
func (u udpSocket) receive(s *Server, c *client) {
	var b [dataLen + 1]byte
	for {
		n, err := u.Read(b[:])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		s.rack.Lock()
		switch {
		case s.clients[c.number] != c:
		case err != nil: // the program is gone
			s.detach(c)
		case n == dataLen:
			s.carry(c, (*[dataLen]byte)(b[:]))
		}
		s.rack.Unlock()
	}
}

func (u udpSocket) try(b []byte) bool {
	_, _ = u.Write(b)
	return true
}

func (udpSocket) later() {}

func (u udpSocket) close() { u.UDPConn.Close() }

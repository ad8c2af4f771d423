package umad

import (
	"net"
	"net/netip"
)

// udpPair is an unconnected UDP socket that accepts datagrams from one peer only. It is not connected
// because the server's port becomes known only after this one's.
type udpPair struct {
	*net.UDPConn
	peer netip.AddrPort
}

func netipPort(a netip.AddrPort, port int) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), uint16(port))
}

// Read implements datagrams. It skips datagrams of others.
func (u udpPair) Read(b []byte) (int, error) {
	for {
		n, from, err := u.ReadFromUDPAddrPort(b)
		if err != nil || netip.AddrPortFrom(from.Addr().Unmap(), from.Port()) == u.peer {
			return n, err
		}
	}
}

// Write implements datagrams.
func (u udpPair) Write(b []byte) (int, error) { return u.WriteToUDPAddrPort(b, u.peer) }

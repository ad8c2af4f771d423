package cable

import (
	"fmt"
	"net/netip"

	"github.com/softvpi/softvpi/internal/link/udp"
)

// DefaultPort is the default UDP port of a fabric's cables.
const DefaultPort = 7069

// socketBuffer is the buffer size to request from the system in each direction, in bytes.
const socketBuffer = 8 << 20

// Socket carries the datagrams of cables over UDP and never blocks. Only one goroutine at a time may use
// it.
type Socket struct {
	at     netip.AddrPort
	system socketSystem
}

// socketSystem is a system's implementation of a socket.
type socketSystem interface {
	// send sends datagrams of size bytes, the last of which may be shorter, and returns how many bytes of
	// them the system has accepted or lost for good.
	send(to netip.AddrPort, b []byte, size int) int
	// receive passes datagrams that have arrived to take, until there are none or it has handled many, and
	// returns their number.
	receive(take func(from netip.AddrPort, b []byte)) int
	// descriptor becomes readable when datagrams arrive; -1: notify is called instead.
	descriptor() int
	// buffer returns how many bytes can wait for receive before datagrams are lost.
	buffer() int
	close()
}

// OpenSocket opens a socket at an address and port of this machine; port 0 is any. If the system has no
// descriptors, notify is called when datagrams have arrived.
func OpenSocket(at netip.AddrPort, notify func()) (*Socket, error) {
	return openSocket(at, notify, openSystem)
}

type opener func(at netip.AddrPort, notify func()) (socketSystem, netip.AddrPort, error)

func openSocket(at netip.AddrPort, notify func(), open opener) (*Socket, error) {
	s, bound, err := open(at, notify)
	if err != nil {
		return nil, fmt.Errorf("cables at UDP %v: %w", at, err)
	}
	return &Socket{bound, s}, nil
}

// Addr returns the socket's address and port.
func (s *Socket) Addr() netip.AddrPort { return s.at }

// Send sends datagrams of size bytes, one after the other in b, the last of which may be shorter. It
// returns how many bytes are done with: fewer than all if the system has no room.
func (s *Socket) Send(to netip.AddrPort, b []byte, size int) int { return s.system.send(to, b, size) }

// Receive passes a limited number of datagrams that have arrived to take, and returns how many. Their
// bytes are valid only during take.
func (s *Socket) Receive(take func(from netip.AddrPort, b []byte)) int { return s.system.receive(take) }

// Descriptor becomes readable when datagrams arrive; -1: notify is called instead.
func (s *Socket) Descriptor() int { return s.system.descriptor() }

// Window returns how much each adapter of a socket may send ahead, such that the system's buffer holds it.
func (s *Socket) Window() int { return min(max(s.system.buffer()/4, minWindow), maxWindow) }

// Close closes the socket, even while another goroutine waits for its descriptor.
func (s *Socket) Close() { s.system.close() }

const (
	minWindow = 64 << 10
	maxWindow = 512 << 10
)

// Datagram returns how long datagrams from a local address may be without being fragmented on the first
// hop. An address that belongs to no single interface is treated as one of Ethernet.
func Datagram(local netip.Addr) int {
	mtu := 1500
	if i, ok := udp.InterfaceOf(local); ok {
		mtu = i.MTU
	}
	headers := 20 + 8
	if local.Is6() && !local.Is4In6() {
		headers = 40 + 8
	}
	return min(max(mtu-headers, minDatagram), MaxDatagram)
}

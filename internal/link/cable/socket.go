package cable

import (
	"fmt"
	"net/netip"

	"github.com/softvpi/softvpi/internal/link/udp"
)

// DefaultPort is the UDP port of a fabric's cables where none is named.
const DefaultPort = 7069

// socketBuffer is what a socket asks the system for in each direction, in bytes.
const socketBuffer = 8 << 20

// Socket carries the datagrams of cables over UDP, without ever waiting. One goroutine at a time uses it.
type Socket struct {
	at     netip.AddrPort
	system socketSystem
}

// socketSystem is a socket as a system has it.
type socketSystem interface {
	// send sends datagrams of size bytes, the last of which may be shorter, and returns how many bytes of them the system has
	// taken, or lost for good.
	send(to netip.AddrPort, b []byte, size int) int
	// receive hands take datagrams that have come, until there are none or it has been a while, and returns their number.
	receive(take func(from netip.AddrPort, b []byte)) int
	// descriptor becomes readable when datagrams come; -1: notify is called.
	descriptor() int
	// buffer is how many bytes wait for receive before more are lost.
	buffer() int
	close()
}

// OpenSocket opens a socket at an address and port of this machine; port 0 is any. notify, where the system has no descriptors, is called
// when datagrams have come.
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

// Addr is where the socket is.
func (s *Socket) Addr() netip.AddrPort { return s.at }

// Send sends datagrams of size bytes, one behind the other in b, the last of which may be shorter. It returns how many bytes of them are
// done with: fewer than all where the system has no room.
func (s *Socket) Send(to netip.AddrPort, b []byte, size int) int { return s.system.send(to, b, size) }

// Receive hands take what has come, a bounded number of datagrams, and returns how many there were. What take is given is valid in it only.
func (s *Socket) Receive(take func(from netip.AddrPort, b []byte)) int { return s.system.receive(take) }

// Descriptor becomes readable when something comes; -1: notify is called.
func (s *Socket) Descriptor() int { return s.system.descriptor() }

// Window is how much each of the adapters of a socket may send before it is handed on: so much that the system keeps it.
func (s *Socket) Window() int { return min(max(s.system.buffer()/4, minWindow), maxWindow) }

// Close closes the socket, also while another goroutine waits for its descriptor.
func (s *Socket) Close() { s.system.close() }

const (
	minWindow = 64 << 10
	maxWindow = 512 << 10
)

// Datagram is how long datagrams from a local address may be without being cut on the first hop; an address that is of no one
// interface is taken for one of Ethernet.
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

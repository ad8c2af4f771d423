// Package tun is a network interface of the system whose packets a program reads and writes: IP packets, without a
// link-layer header. It exists on Linux, for programs that may make interfaces (CAP_NET_ADMIN).
package tun

import (
	"errors"
	"net/netip"
)

// ErrUnsupported says that the system has no such interfaces.
var ErrUnsupported = errors.New("TUN interfaces are there on Linux only")

// MaxName is how long the name of an interface may be, in bytes.
const MaxName = 15

// maxPieces is how many pieces a packet to write may have.
const maxPieces = 64

// Offloads are what the system may leave to be done to packets that it sends.
type Offloads struct {
	Checksum       bool // of TCP and UDP, over both IP versions
	Large4, Large6 bool // to cut large TCP packets over IPv4 and IPv6
	LargeSize      int  // the largest, in bytes; 0: as the system has it
}

// Settings are what the system's user has given an interface.
type Settings struct {
	Up       bool
	Prefixes []netip.Prefix // its addresses
	Routes   []Route        // that lead over it to a gateway
}

// Route is a way over the interface to the neighbour Via.
type Route struct {
	Prefix netip.Prefix
	Via    netip.Addr
}

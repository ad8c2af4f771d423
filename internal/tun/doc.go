// Package tun provides network interfaces of the system whose packets a program reads and writes: IP
// packets, without a link-layer header, or Ethernet frames (OpenTAP). Linux only, for programs that may create interfaces
// (CAP_NET_ADMIN).
package tun

import (
	"errors"
	"net/netip"
)

// ErrUnsupported says that the system does not support such interfaces.
var ErrUnsupported = errors.New("TUN interfaces exist on Linux only")

// MaxName is the maximum length of an interface name in bytes.
const MaxName = 15

// maxPieces is how many pieces a packet to write may have.
const maxPieces = 64

// Offloads say what the system may leave undone in packets that it sends.
type Offloads struct {
	Checksum       bool // of TCP and UDP, over both IP versions
	Large4, Large6 bool // splitting large TCP packets over IPv4 and IPv6
	LargeSize      int  // maximum size in bytes; 0: the system's default
}

// Location says where an interface is now: it may be moved to another network namespace, and renamed.
type Location struct {
	Name      string
	Index     int    // in its network namespace
	Namespace uint64 // inode of that namespace
}

// Settings are an interface's settings by the system's administrator.
type Settings struct {
	Up       bool
	Prefixes []netip.Prefix // its addresses
	Routes   []Route        // routes through it to a gateway
}

// Route is a route over the interface through the neighbour Via.
type Route struct {
	Prefix netip.Prefix
	Via    netip.Addr
}

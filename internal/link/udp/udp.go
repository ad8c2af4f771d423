// Package udp implements links over unprivileged UDP sockets, for RoCE v2 over IPv4 and IPv6. On Linux it
// sends bursts with sendmmsg and UDP_SEGMENT and receives them with recvmmsg and UDP_GRO if the kernel
// supports them; elsewhere, and on request, it uses the sockets of package net.
package udp

import (
	"fmt"
	"net/netip"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// DefaultSourcePorts is how many source ports a link binds at most at a time by default.
	DefaultSourcePorts = 1024

	maxSourcePorts       = 1 << 14 // there are no more dynamic ports
	defaultReceiveBuffer = 16 << 20
	defaultSendBuffer    = 4 << 20
	defaultBatch         = 64
	maxGroups            = 64
	maxErrors            = 64

	// A burst has at most 64 segments (UDP_MAX_SEGMENTS of older kernels) and fits a UDP datagram.
	maxSegments = 64
	maxBurst    = 65000
	maxDatagram = 1 << 16
	// maxPacket is the longest UDP payload of a RoCE packet, rounded up: 4096 bytes and headers. If
	// datagrams arrive singly, longer ones are truncated.
	maxPacket = 4096 + 128
)

// Config configures a link. The zero value with Addr set is the default.
type Config struct {
	// Addr is the port's address: IPv4 or IPv6, with a zone where it is link-local.
	Addr netip.Addr
	// Port is the RoCE v2 UDP port (roce_udp_dport): packets are received on it, and by default sent to
	// it. 0 means 4791.
	Port uint16
	// SourcePorts is how many sockets may be open at a time, as routes need them, to send from source ports other
	// than Port: 0 means 1024, negative none, 16384 is the maximum. The sockets of all links of the process
	// take a quarter of its descriptors at most.
	SourcePorts int
	// ReceiveBuffer is the SO_RCVBUF to request from the kernel, in bytes: 0 means 16 MB or as much as is
	// allowed. (Linux doubles it for its bookkeeping.)
	ReceiveBuffer int
	// Batch is how many datagrams one Receive takes from the kernel: 0 means 64, the maximum. Of coalesced
	// bursts it takes fewer.
	Batch int
	// Notify, if not nil, is called on platforms without descriptors to wait on, when packets arrive and
	// none were waiting. It must not call the link.
	Notify func()
	// Portable uses the sockets of package net on every platform.
	Portable bool
	// NoSegmentation and NoCoalescing leave UDP_SEGMENT and UDP_GRO alone.
	NoSegmentation, NoCoalescing bool
	// Frames says whether single short packets are sent as Ethernet frames, beside the socket (package
	// packet).
	Frames packet.Mode
}

// Link is an open UDP link.
type Link interface {
	link.Link
	// Status describes the link.
	Status() Status
	// SetMTU says that the interface has another MTU, in bytes, than when the link was opened.
	SetMTU(mtu int)
}

// Status describes an open link.
type Status struct {
	Addr netip.AddrPort
	// Method names the calls in use: "sendmmsg", or "portable".
	Method string
	// Segmentation and Coalescing tell whether UDP_SEGMENT and UDP_GRO are in use.
	Segmentation, Coalescing bool
	// Interface holds the address; MTU is its MTU in bytes.
	Interface string
	MTU       int
	// ReceiveBuffer and SendBuffer are the effective sizes in bytes.
	ReceiveBuffer, SendBuffer int
	// SourcePorts is the rule in force, with the number of sockets: "port 4791", or "own (3 of 1024 bound)".
	SourcePorts string
	// BoundSourcePorts are those bound now.
	BoundSourcePorts []uint16
	// SingleDestinations counts destinations whose device refuses segmentation.
	SingleDestinations int
	// Frames tells whether short packets are sent as frames, and if not, why.
	Frames string
	// Groups are the multicast groups that have been joined.
	Groups []netip.Addr
}

// FieldError says which field of a Config is invalid, and what it may be.
type FieldError struct {
	Field string
	Value any
	Want  string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("udp link: %s %v: want %s", e.Field, e.Value, e.Want)
}

// Open binds the sockets. It returns a *FieldError for an invalid configuration and an *AddressInUseError
// if another socket has the address.
func Open(cfg Config) (Link, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	if cfg.Portable {
		return openPortable(cfg)
	}
	return open(cfg)
}

// complete checks a configuration and fills in the defaults.
func (c Config) complete() (Config, error) {
	c.Addr = c.Addr.Unmap()
	if !c.Addr.IsValid() || c.Addr.IsUnspecified() || c.Addr.IsMulticast() {
		return c, &FieldError{"Addr", c.Addr, "a unicast address of this host"}
	}
	if c.SourcePorts > maxSourcePorts {
		return c, &FieldError{"SourcePorts", c.SourcePorts, "at most 16384"}
	}
	if c.ReceiveBuffer < 0 || c.ReceiveBuffer > 1<<30 {
		return c, &FieldError{"ReceiveBuffer", c.ReceiveBuffer, "0 to 1073741824 bytes"}
	}
	if c.Frames > packet.Off {
		return c, &FieldError{"Frames", uint8(c.Frames), "0 (auto), 1 (on) or 2 (off)"}
	}
	if c.Batch < 0 || c.Batch > 64 {
		return c, &FieldError{"Batch", c.Batch, "0 to 64"}
	}
	if c.Port == 0 {
		c.Port = eth.PortRoCEv2
	}
	if c.Batch == 0 {
		c.Batch = defaultBatch
	}
	if c.SourcePorts == 0 {
		c.SourcePorts = DefaultSourcePorts
	}
	c.SourcePorts = max(c.SourcePorts, 0)
	return c, nil
}

// checkDestination returns why packets to dst cannot be sent from addr.
func checkDestination(dst, addr netip.Addr) error {
	switch {
	case !dst.IsValid() || dst.IsUnspecified():
		return fmt.Errorf("udp link: destination %v: want an address", dst)
	case dst.Is4() != addr.Is4():
		return fmt.Errorf("udp link: destination %v is not of the family of %v", dst, addr)
	}
	return nil
}

// sourcePortRule describes the rule in force and how many source ports are bound.
func (c *Config) sourcePortRule(bound int) string {
	if c.SourcePorts == 0 {
		return fmt.Sprintf("port %d", c.Port)
	}
	return fmt.Sprintf("own (%d of %d bound)", bound, c.SourcePorts)
}

// Package ethernet is a link of whole Ethernet frames on an interface of Linux, through packet sockets (AF_PACKET): it carries
// whatever the frames carry, and serves stations with MACs, VLANs and addresses of their own. It takes CAP_NET_RAW.
//
// An address of a station may be the system's as well: then the station has the interface's MAC (in a VLAN, that of the
// interface of that VLAN on top of it), the system answers for the address, and its routes and neighbours are asked, over
// netlink. For as long, a socket keeps the RoCE v2 port of the address, which would otherwise answer packets with
// "port unreachable", and other links away from it. Addresses that the system does not have are answered for here (package
// station); the interface then accepts frames for MACs other than its own.
//
// Frames arrive as they were on the wire, in spite of what the system has done to them or left undone: a VLAN tag that it took
// out is put back, what it coalesced is cut again, and of a frame whose checksum an interface would have filled in, a UDP
// checksum is left out (RoCE has none) and any other one filled in. What leaves through the link's own interface is not received.
//
// Frames take a system call for up to 64, in both directions. A ring of shared memory to receive in (packet_mmap) either delays
// frames, as it passes on blocks (version 3), or has a place for the longest frame for each (version 2). What the ways take for a
// frame of 64 bytes across veth, where whoever sends also does what the system does to receive, by "chrt -r 1 go test
// ./internal/link/ethernet -run '^$' -bench . -benchtime 0.3s" on an AMD EPYC:
//
//	                         send      receive
//	this link                1340 ns   556 ns
//	sendmmsg, recvmmsg       1262 ns   520 ns
//	sendmmsg, ring           1515 ns     7 ns
//	past the qdisc, recvmmsg 1262 ns   512 ns
//	ring, recvmmsg           1209 ns   677 ns
//	ring, ring               1826 ns     8 ns
//
// So a ring to send from gains nothing. One to receive in would save 15 % of the whole, and cost the sender, who is the slower end
// on veth, 20 % of its frames.
package ethernet

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	name                 = "ethernet link"
	mostName             = 15 // bytes of an interface's name
	defaultReceiveBuffer = 16 << 20
	mostReceiveBuffer    = 1 << 30
)

// Config describes a link.
type Config struct {
	// Interface is the name of an Ethernet interface in the network namespace of the calling thread.
	Interface string
	// Stations are those served from the start.
	Stations []link.Station
	// Promiscuous links hand up every frame on the interface.
	Promiscuous bool
	// UDPPort is kept for stations whose addresses are the system's, so that the system does not refuse what arrives there; 0:
	// 4791, that of RoCE v2.
	UDPPort uint16
	// ReceiveBuffer is the SO_RCVBUF to request, in bytes: 0 means 16 MB or as much as is allowed.
	ReceiveBuffer int
}

// Open opens a link. It returns a *station.FieldError for an invalid configuration, errors.ErrUnsupported on other systems
// than Linux, and the system's errors.
func Open(cfg Config) (link.Link, error) {
	if cfg.Interface == "" || len(cfg.Interface) > mostName {
		return nil, bad("Interface", fmt.Sprintf("%q", cfg.Interface), fmt.Sprintf("a name of 1 to %d bytes", mostName))
	}
	if cfg.ReceiveBuffer < 0 || cfg.ReceiveBuffer > mostReceiveBuffer {
		return nil, bad("ReceiveBuffer", cfg.ReceiveBuffer, fmt.Sprintf("0 to %d bytes", mostReceiveBuffer))
	}
	if cfg.ReceiveBuffer == 0 {
		cfg.ReceiveBuffer = defaultReceiveBuffer
	}
	if cfg.UDPPort == 0 {
		cfg.UDPPort = eth.PortRoCEv2
	}
	return open(cfg)
}

func bad(field string, value any, want string) error {
	return &station.FieldError{Link: name, Field: field, Value: value, Want: want}
}

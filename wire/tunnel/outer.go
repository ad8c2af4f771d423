package tunnel

import (
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
)

// Outer is what a tunnel puts before a frame beside its own header.
type Outer struct {
	Ethernet eth.Ethernet // its Type follows from the addresses
	// Src and Dst are the ends of the tunnel, of one IP version.
	Src, Dst netip.Addr
	TTL, ToS uint8
	ID       uint16 // of the IPv4 packet
	// SrcPort and DstPort are VXLAN's.
	SrcPort, DstPort uint16
	// Sum says that VXLAN's UDP has a checksum; RFC 7348, 5, would rather have none, and Linux has one.
	Sum bool
}

// SourcePort returns the source port of VXLAN for a hash of the flow inside, so that the way through a network stays the same for a
// flow and differs for others (RFC 7348, 5).
func SourcePort(hash uint32) uint16 {
	return FirstSource + uint16((hash^hash>>16)&(1<<14-1))
}

// Append adds a frame in a tunnel to b.
func (o *Outer) Append(b []byte, h Header, frame []byte) []byte {
	n := HeaderLen + len(frame)
	protocol := uint8(ProtocolGRE)
	if h.Kind == VXLAN {
		n, protocol = n+eth.UDPLen, eth.ProtocolUDP
	}
	e := o.Ethernet
	if e.Type = eth.TypeIPv4; o.Src.Is6() {
		e.Type = eth.TypeIPv6
	}
	b = e.Append(b)
	if o.Src.Is6() {
		var ip [eth.IPv6Len]byte
		eth.IPv6(ip[:]).Encode(o.ToS, 0, n, protocol, o.TTL, o.Src.As16(), o.Dst.As16())
		b = append(b, ip[:]...)
	} else {
		var ip [eth.IPv4Len]byte
		eth.IPv4(ip[:]).Encode(o.ToS, eth.IPv4Len+n, o.ID, o.TTL, protocol, o.Src.As4(), o.Dst.As4())
		b = append(b, ip[:]...)
	}
	at := len(b)
	if h.Kind == VXLAN {
		var udp [eth.UDPLen]byte
		eth.UDP(udp[:]).Encode(o.SrcPort, o.DstPort, n)
		b = append(b, udp[:]...)
	}
	b = append(h.Append(b), frame...)
	if h.Kind == VXLAN && o.Sum {
		eth.UDP(b[at:]).SetChecksum(eth.UDPChecksum(o.Src, o.Dst, b[at:]))
	}
	return b
}

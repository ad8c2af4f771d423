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
	from := len(b)
	b = append(o.AppendHead(b, h, len(frame)), frame...)
	if at := o.udpAt(h); at != 0 {
		udp := b[from+at:]
		eth.UDP(udp).SetChecksum(eth.UDPChecksum(o.Src, o.Dst, udp))
	}
	return b
}

// AppendHead adds what comes before a frame of n bytes in a tunnel to b. A UDP checksum, which covers the frame, is 0.
func (o *Outer) AppendHead(b []byte, h Header, n int) []byte {
	n += HeaderLen
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
	if h.Kind == VXLAN {
		var udp [eth.UDPLen]byte
		eth.UDP(udp[:]).Encode(o.SrcPort, o.DstPort, n)
		b = append(b, udp[:]...)
	}
	return h.Append(b)
}

// HeadLen is how many bytes AppendHead adds.
func (o *Outer) HeadLen(k Kind) int {
	n := o.Ethernet.Len() + eth.IPv4Len + HeaderLen
	if o.Src.Is6() {
		n += eth.IPv6Len - eth.IPv4Len
	}
	if k == VXLAN {
		n += eth.UDPLen
	}
	return n
}

// udpAt returns where the UDP header is that is to have a checksum; 0: none is.
func (o *Outer) udpAt(h Header) int {
	if h.Kind != VXLAN || !o.Sum {
		return 0
	}
	return o.HeadLen(h.Kind) - HeaderLen - eth.UDPLen
}

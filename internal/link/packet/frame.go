package packet

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// mostHeaders is the maximum length of the Ethernet, IP and UDP headers written here.
const mostHeaders = eth.EthernetLen + eth.IPv6Len + eth.UDPLen

// maxFrame is the length of the longest frame that is sent or completely received.
const maxFrame = mostHeaders + MostPayload

// beginning is the part that all frames to a destination have in common: the Ethernet header and the constant fields of
// the IP header.
type beginning struct {
	bytes [eth.EthernetLen + eth.IPv6Len]byte
	// sum is the ones' complement sum of the 16-bit words of the IPv4 header in bytes, in which traffic class, length and
	// time to live are 0.
	sum uint32
}

// set makes the beginning of frames from src to dst. macs are the MAC addresses of the next hop and of the interface.
func (g *beginning) set(macs *[12]byte, src, dst netip.Addr) {
	*g = beginning{}
	b := g.bytes[:]
	copy(b, macs[:])
	ip := b[eth.EthernetLen:]
	if !dst.Is4() {
		b[12], b[13] = byte(eth.TypeIPv6>>8), byte(eth.TypeIPv6&0xff)
		eth.IPv6(ip).Encode(0, 0, 0, eth.ProtocolUDP, 0, src.As16(), dst.As16())
		return
	}
	b[12], b[13] = byte(eth.TypeIPv4>>8), byte(eth.TypeIPv4&0xff)
	eth.IPv4(ip).Encode(0, 0, 0, 0, eth.ProtocolUDP, src.As4(), dst.As4())
	g.sum = uint32(^eth.IPv4(ip).Checksum())
}

// ip writes the beginning to b, which has room for the longest one, and completes its IP header for a route and an IP
// payload of length bytes. end is where that payload begins.
func (g *beginning) ip(b []byte, r *frame.Route, length int) (end int) {
	hops := r.HopLimit
	if hops == 0 {
		hops = frame.DefaultHopLimit
	}
	const at = eth.EthernetLen
	*(*[len(g.bytes)]byte)(b) = g.bytes
	if !r.Dst.Is4() {
		binary.BigEndian.PutUint32(b[at:], 6<<28|uint32(r.TrafficClass)<<20|r.FlowLabel&0xfffff)
		binary.BigEndian.PutUint16(b[at+4:], uint16(length))
		b[at+7] = hops
		return at + eth.IPv6Len
	}
	length += eth.IPv4Len
	b[at+1], b[at+8] = r.TrafficClass, hops
	binary.BigEndian.PutUint16(b[at+2:], uint16(length))
	sum := g.sum + uint32(r.TrafficClass) + uint32(length) + uint32(hops)<<8
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(b[at+10:], ^uint16(sum+sum>>16))
	return at + eth.IPv4Len
}

// build writes the frame of a single packet to b and returns its length. The packet's ICRC must be for
// identification 0 and no options. b must have room for the longest headers and the packet.
func build(b []byte, g *beginning, port uint16, o *frame.Out) int {
	r := o.Route
	if r.DstPort != 0 {
		port = r.DstPort
	}
	length := eth.UDPLen + o.Len()
	udp := g.ip(b, r, length)
	eth.UDP(b[udp:]).Encode(r.SrcPort, port, length)
	at := udp + eth.UDPLen
	at += copy(b[at:], o.Head[o.HeadStart:o.HeadEnd])
	at += copy(b[at:], o.Payload)
	at += copy(b[at:], o.Tail[:o.TailLen])
	if !r.Dst.Is4() {
		eth.UDP(b[udp:]).SetChecksum(eth.UDPChecksum(r.Src, r.Dst, b[udp:at]))
	}
	return at
}

// datagram is the decoded content of a frame.
type datagram struct {
	data         []byte // UDP payload; nil if the frame has only its headers
	src          netip.Addr
	srcPort      uint16
	length       int // of the payload
	trafficClass uint8
	hopLimit     uint8
	flowLabel    uint32
	id           uint16 // IPv4 identification
}

// parse decodes a frame accepted by the filter into d. It trusts the length in the UDP header, which for a burst
// is the total length. It returns false for a frame that is not for addr and port, or whose lengths are
// inconsistent.
func parse(d *datagram, b []byte, addr netip.Addr, port uint16) bool {
	if len(b) < eth.EthernetLen {
		return false
	}
	d.data = nil
	kind := eth.EtherType(uint16(b[12])<<8 | uint16(b[13]))
	b = b[eth.EthernetLen:]
	var after int // length of what follows, according to the IP header
	switch {
	case addr.Is4() && kind == eth.TypeIPv4 && len(b) >= eth.IPv4Len+eth.UDPLen:
		h := eth.IPv4(b)
		if b[0] != version4 || h.Protocol() != eth.ProtocolUDP || h.Fragment() || h.Dst() != addr {
			return false
		}
		after = h.TotalLen() - eth.IPv4Len
		d.src, d.trafficClass, d.hopLimit, d.flowLabel, d.id = h.Src(), h.ToS(), h.TTL(), 0, h.ID()
		b = b[eth.IPv4Len:]
	case !addr.Is4() && kind == eth.TypeIPv6 && len(b) >= eth.IPv6Len+eth.UDPLen:
		h := eth.IPv6(b)
		if b[0]>>4 != 6 || h.NextHeader() != eth.ProtocolUDP || h.Dst() != addr.WithZone("") {
			return false
		}
		after = h.PayloadLen()
		d.src, d.trafficClass, d.hopLimit, d.flowLabel, d.id = h.Src(), h.TrafficClass(), h.HopLimit(), h.FlowLabel(), 0
		if zone := addr.Zone(); zone != "" && d.src.IsLinkLocalUnicast() {
			d.src = d.src.WithZone(zone)
		}
		b = b[eth.IPv6Len:]
	default:
		return false
	}
	udp := eth.UDP(b)
	d.srcPort, d.length = udp.SrcPort(), udp.Length()-eth.UDPLen
	if udp.DstPort() != port || d.length < 0 || udp.Length() > after {
		return false
	}
	if d.length > MostPayload {
		return true // the socket has it
	}
	b = b[eth.UDPLen:]
	if d.length > len(b) {
		return false
	}
	d.data = b[:d.length:d.length]
	return true
}

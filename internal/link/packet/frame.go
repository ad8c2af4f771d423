package packet

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// mostHeaders is the maximum length of the Ethernet, IP and UDP headers written here.
const mostHeaders = eth.EthernetLen + eth.IPv6Len + eth.UDPLen

// maxFrame is the length of the longest frame that is sent or completely received.
const maxFrame = mostHeaders + MostPayload

// build writes the frame of a single packet to b and returns its length. The packet's ICRC must be for
// identification 0 and no options. b must have room for the longest headers and the packet.
func build(b []byte, g *eth.Template, port uint16, o *frame.Out) int {
	r := o.Route
	if r.DstPort != 0 {
		port = r.DstPort
	}
	length := eth.UDPLen + o.Len()
	udp := g.Put(b, r.TrafficClass, frame.Hops(r.HopLimit), r.FlowLabel, length)
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

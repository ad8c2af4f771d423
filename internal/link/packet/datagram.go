package packet

import (
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
)

// Datagram is a short packet, or a burst of them, as an Intake returns it.
type Datagram struct {
	Data         []byte // UDP payload
	Src          netip.Addr
	SrcPort      uint16
	Segment      int    // payload length of the packets of a burst, 0 for a single packet
	ID           uint16 // IPv4 identification
	TrafficClass uint8
	HopLimit     uint8
	FlowLabel    uint32
}

// parse decodes a packet, which begins at its IP header and ends no earlier than its UDP payload, into d. It returns
// false for one that is not for addr and port, or whose lengths are inconsistent.
func (d *Datagram) parse(b []byte, addr netip.Addr, port uint16) bool {
	var after int // length of what follows, according to the IP header
	switch {
	case addr.Is4() && len(b) >= eth.IPv4Len+eth.UDPLen:
		h := eth.IPv4(b)
		if b[0] != version4 || h.Protocol() != eth.ProtocolUDP || h.Fragment() || h.Dst() != addr {
			return false
		}
		after = h.TotalLen() - eth.IPv4Len
		d.Src, d.TrafficClass, d.HopLimit, d.FlowLabel, d.ID = h.Src(), h.ToS(), h.TTL(), 0, h.ID()
		b = b[eth.IPv4Len:]
	case !addr.Is4() && len(b) >= eth.IPv6Len+eth.UDPLen:
		h := eth.IPv6(b)
		if b[0]>>4 != 6 || h.NextHeader() != eth.ProtocolUDP || h.Dst() != addr.WithZone("") {
			return false
		}
		after = h.PayloadLen()
		d.Src, d.TrafficClass, d.HopLimit, d.FlowLabel, d.ID = h.Src(), h.TrafficClass(), h.HopLimit(), h.FlowLabel(), 0
		if zone := addr.Zone(); zone != "" && d.Src.IsLinkLocalUnicast() {
			d.Src = d.Src.WithZone(zone)
		}
		b = b[eth.IPv6Len:]
	default:
		return false
	}
	udp := eth.UDP(b)
	n := udp.Length()
	if udp.DstPort() != port || n < eth.UDPLen || n > after || n > len(b) {
		return false
	}
	d.SrcPort, d.Data = udp.SrcPort(), b[eth.UDPLen:n:n]
	return true
}

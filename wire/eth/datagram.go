package eth

import "net/netip"

// Datagram is what the IP and UDP headers of a UDP datagram say. Its addresses are of one family, that of Dst;
// one of another family counts as 0.0.0.0 or ::.
type Datagram struct {
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
	TrafficClass     uint8  // DSCP in the high six bits, ECN in the low two
	HopLimit         uint8  // time to live of IPv4
	FlowLabel        uint32 // 20 bits, IPv6
	ID               uint16 // identification, IPv4
}

// Type is the Ethernet type of the datagram's packet.
func (d *Datagram) Type() EtherType {
	if d.Dst.Is4() {
		return TypeIPv4
	}
	return TypeIPv6
}

// IPLen is the length of the datagram's IP header.
func (d *Datagram) IPLen() int {
	if d.Dst.Is4() {
		return IPv4Len
	}
	return IPv6Len
}

// HeaderLen is the length of the datagram's headers, IP and UDP.
func (d *Datagram) HeaderLen() int { return d.IPLen() + UDPLen }

// Put writes the headers of the datagram with a payload of n bytes to the first HeaderLen bytes of b: no options, DF set,
// and no UDP checksum (UDP.SetChecksum).
func (d *Datagram) Put(b []byte, n int) {
	n += UDPLen
	if d.Dst.Is4() {
		IPv4(b).Encode(d.TrafficClass, IPv4Len+n, d.ID, d.HopLimit, ProtocolUDP, bytes4(d.Src), bytes4(d.Dst))
		UDP(b[IPv4Len:]).Encode(d.SrcPort, d.DstPort, n)
		return
	}
	IPv6(b).Encode(d.TrafficClass, d.FlowLabel, n, ProtocolUDP, d.HopLimit, bytes16(d.Src), bytes16(d.Dst))
	UDP(b[IPv6Len:]).Encode(d.SrcPort, d.DstPort, n)
}

// bytes4 returns the four bytes of a, or zeros if it is not an IPv4 address.
func bytes4(a netip.Addr) (v [4]byte) {
	if a.Is4() || a.Is4In6() {
		v = a.As4()
	}
	return v
}

// bytes16 returns the sixteen bytes of a, or zeros if it is not valid.
func bytes16(a netip.Addr) (v [16]byte) {
	if a.IsValid() {
		v = a.As16()
	}
	return v
}

package eth

import "encoding/binary"

const (
	// MaxTags is how many VLAN tags Headers looks behind: a frame with more of them is taken for one of Ethernet type VLAN.
	MaxTags = 4
	// TCPLen is the length of a TCP header without options.
	TCPLen = 20
	// maxExtensions is how many IPv6 extension headers Headers looks behind; none of the packets in use has as many.
	maxExtensions = 8
)

// IPv6 extension headers (RFC 8200 4, RFC 4302, RFC 6275 6).
const (
	nextRouting     = 43
	nextFragment    = 44
	nextAH          = 51
	nextDestination = 60

	homeAddress     = 0xc9 // type of the Home Address option (RFC 6275 6.3)
	mobileRouting   = 2    // type of the routing header of mobile nodes (RFC 6275 6.4)
	addressInHeader = 8    // where that header has its address
)

// Headers says where the headers of a frame are. The frame is from anybody: what its lengths make impossible is not
// looked at, and neither are checksums. Its zero value is that of no frame.
type Headers struct {
	// Type is the Ethernet type of what follows the tags.
	Type EtherType
	// TCI is the control information of the first of Tags tags, 802.1Q's and 802.1ad's.
	TCI  uint16
	Tags uint8
	// Version is 4 or 6, or 0 for a frame without an IP packet, or with one whose header or lengths cannot be.
	Version uint8
	// Protocol is what the IP packet carries, behind IPv6 extension headers.
	Protocol uint8
	// Fragment says that the IP packet is a part of another.
	Fragment bool
	// Options says that there are IPv4 options or IPv6 extension headers.
	Options bool
	// Network is where the Ethernet header ends, Transport where the IP header with its options or extension headers does,
	// 0 if Version is, and End where the IP packet does. Padding of Ethernet may follow.
	Network, Transport, End int
	// Data is where the payload of TCP or UDP begins; 0 for other protocols, fragments, and headers that are cut off.
	Data int
	// HomeAddress and Routing are where a mobile node's home address stands, in a destination option or a routing header of
	// type 2; 0 if it does not.
	HomeAddress, Routing int
}

// Parse looks at a frame. It returns false for one without a whole Ethernet header.
func (h *Headers) Parse(frame []byte) bool {
	*h = Headers{}
	at := EthernetLen - 2
	for {
		if len(frame) < at+2 {
			return false
		}
		h.Type = EtherType(binary.BigEndian.Uint16(frame[at:]))
		if h.Type != TypeVLAN && h.Type != TypeServiceVLAN || h.Tags == MaxTags {
			break
		}
		if len(frame) < at+VLANLen+2 {
			return false
		}
		if h.Tags == 0 {
			h.TCI = binary.BigEndian.Uint16(frame[at+2:])
		}
		h.Tags++
		at += VLANLen
	}
	h.Network = at + 2
	switch h.Type {
	case TypeIPv4:
		h.ipv4(frame)
	case TypeIPv6:
		h.ipv6(frame)
	}
	return true
}

// ParseIP looks at an IP packet without an Ethernet header.
func (h *Headers) ParseIP(packet []byte) {
	*h = Headers{}
	switch {
	case len(packet) == 0:
	case packet[0]>>4 == 4:
		h.Type = TypeIPv4
		h.ipv4(packet)
	case packet[0]>>4 == 6:
		h.Type = TypeIPv6
		h.ipv6(packet)
	}
}

func (h *Headers) ipv4(b []byte) {
	p := IPv4(b[h.Network:])
	if len(p) < IPv4Len || p[ip4Version]>>4 != 4 {
		return
	}
	n, total := p.HeaderLen(), p.TotalLen()
	if n < IPv4Len || total < n || total > len(p) {
		return
	}
	h.Version, h.Protocol, h.Fragment, h.Options = 4, p.Protocol(), p.Fragment(), n > IPv4Len
	h.Transport, h.End = h.Network+n, h.Network+total
	h.transport(b)
}

func (h *Headers) ipv6(b []byte) {
	p := IPv6(b[h.Network:])
	if len(p) < IPv6Len || p[ip6Version]>>4 != 6 || p.PayloadLen() > len(p)-IPv6Len {
		return
	}
	h.Version, h.Protocol = 6, p.NextHeader()
	h.Transport, h.End = h.Network+IPv6Len, h.Network+IPv6Len+p.PayloadLen()
	for range maxExtensions {
		if !h.extension(b) {
			break
		}
	}
	h.transport(b)
}

// extension goes on behind an extension header, if one follows and is whole.
func (h *Headers) extension(b []byte) bool {
	p := b[h.Transport:h.End]
	if len(p) < 8 {
		return false
	}
	n := (int(p[1]) + 1) * 8
	switch h.Protocol {
	case ProtocolHopByHop, nextDestination, nextRouting:
	case nextFragment: // an atomic one, alone of its packet, is none (RFC 6946)
		n = 8
		h.Fragment = h.Fragment || binary.BigEndian.Uint16(p[2:])&^uint16(6) != 0
	case nextAH:
		n = (int(p[1]) + 2) * 4
	default:
		return false
	}
	h.Options = true
	if n > len(p) || h.Fragment && h.Protocol != nextFragment {
		return false
	}
	switch h.Protocol {
	case nextDestination:
		if at := findHome(p[:n]); at > 0 {
			h.HomeAddress = h.Transport + at
		}
	case nextRouting:
		if n == addressInHeader+16 && p[2] == mobileRouting && p[3] == 1 {
			h.Routing = h.Transport + addressInHeader
		}
	}
	h.Protocol = p[0]
	h.Transport += n
	return true
}

// findHome returns where a header of options has a home address; 0: it has none.
func findHome(p []byte) int {
	for at := 2; at+2 <= len(p); {
		if p[at] == 0 { // Pad1
			at++
			continue
		}
		n := int(p[at+1])
		if at+2+n > len(p) {
			return 0
		}
		if p[at] == homeAddress && n == 16 {
			return at + 2
		}
		at += 2 + n
	}
	return 0
}

// transport finds the payload of TCP and UDP.
func (h *Headers) transport(b []byte) {
	if h.Fragment {
		return
	}
	p := b[h.Transport:h.End]
	switch h.Protocol {
	case ProtocolTCP:
		if len(p) < TCPLen {
			return
		}
		if n := int(p[12]>>4) * 4; n >= TCPLen && n <= len(p) {
			h.Data = h.Transport + n
		}
	case ProtocolUDP:
		if len(p) < UDPLen {
			return
		}
		if n := UDP(p).Length(); n >= UDPLen && n <= len(p) {
			h.Data = h.Transport + UDPLen
		}
	}
}

package eth

import (
	"net/netip"
)

// Types of the messages of IPv6 neighbour discovery that resolve addresses (RFC 4861 4.3, 4.4). They are ICMPv6
// messages with hop limit NDPHopLimit.
const (
	NDPSolicitation  = 135
	NDPAdvertisement = 136
	// NDPHopLimit is the hop limit with which they are sent, and without which they are not accepted: they were not routed
	// (RFC 4861 11.2).
	NDPHopLimit = 255
)

const (
	ndpSource = 1 // option: link-layer address of a solicitation's sender
	ndpTarget = 2 // option: link-layer address of an advertisement's target
	ndpUnit   = 8 // bytes that an option's length counts
	ndpHeader = 2 // bytes of an option before its content

	// Flags of an advertisement (RFC 4861 4.4), in the four bytes after the checksum.
	ndpRouter    = 1 << 31
	ndpSolicited = 1 << 30
	ndpOverride  = 1 << 29
)

// Discovery is a neighbour solicitation or advertisement (RFC 4861 4.3, 4.4).
type Discovery struct {
	Advertisement               bool
	Router, Solicited, Override bool // of advertisements
	Target                      netip.Addr
	// Link is the content of the link-layer address option: the sender's own address in a solicitation, the target's in an
	// advertisement. It has 6 bytes on Ethernet (RFC 2464 6), and a multiple of 8 more on other links. Nil: there is none.
	Link []byte
}

// AppendPacket adds the complete IPv6 packet from src to dst to b.
func (d *Discovery) AppendPacket(b []byte, src, dst netip.Addr) []byte {
	m := ICMP{Type: NDPSolicitation, Data: appendIPv6(nil, d.Target)}
	option := byte(ndpSource)
	if d.Advertisement {
		m.Type, option = NDPAdvertisement, ndpTarget
		m.Rest = ndpFlag(d.Router, ndpRouter) | ndpFlag(d.Solicited, ndpSolicited) | ndpFlag(d.Override, ndpOverride)
	}
	if len(d.Link) != 0 {
		m.Data = append(m.Data, option, byte((ndpHeader+len(d.Link)+ndpUnit-1)/ndpUnit))
		m.Data = append(m.Data, d.Link...)
		for len(m.Data)%ndpUnit != 0 {
			m.Data = append(m.Data, 0)
		}
	}
	body := m.AppendV6(nil, src, dst)
	from := len(b)
	b = append(b, make([]byte, IPv6Len)...)
	IPv6(b[from:]).Encode(0, 0, len(body), ProtocolICMPv6, NDPHopLimit, bytes16(src), bytes16(dst))
	return append(b, body...)
}

func ndpFlag(on bool, v uint32) uint32 {
	if on {
		return v
	}
	return 0
}

// IsDiscovery reports whether an IPv6 packet is a neighbour solicitation or advertisement, by its types alone.
func IsDiscovery(h IPv6, payload []byte) bool {
	return h.NextHeader() == ProtocolICMPv6 && len(payload) > 0 && (payload[0] == NDPSolicitation || payload[0] == NDPAdvertisement)
}

// ParseDiscovery reads the ICMPv6 message of an IPv6 packet with these addresses and this hop limit, with the checks of
// RFC 4861 7.1. Link shares b's memory. The error is a *LengthError or a *FieldError.
func ParseDiscovery(b []byte, src, dst netip.Addr, hopLimit uint8) (Discovery, error) {
	m, err := ParseICMPv6(b, src, dst)
	if err != nil {
		return Discovery{}, err
	}
	d := Discovery{Advertisement: m.Type == NDPAdvertisement}
	switch {
	case m.Type != NDPSolicitation && m.Type != NDPAdvertisement:
		return d, bad("nd type", int(m.Type), "135 or 136")
	case m.Code != 0:
		return d, bad("nd code", int(m.Code), "0")
	case hopLimit != NDPHopLimit:
		return d, bad("nd hop limit", int(hopLimit), "255")
	case len(m.Data) < 16:
		return d, short("nd message", len(b), icmpLen+16)
	}
	d.Target = netip.AddrFrom16([16]byte(m.Data))
	if d.Target.IsMulticast() {
		return d, bad("nd target", int(m.Data[0]), "a unicast address")
	}
	option := byte(ndpSource)
	if d.Advertisement {
		option = ndpTarget
		d.Router, d.Solicited, d.Override = m.Rest&ndpRouter != 0, m.Rest&ndpSolicited != 0, m.Rest&ndpOverride != 0
		if d.Solicited && dst.IsMulticast() {
			return d, bad("nd solicited flag", 1, "0 in what goes to a group")
		}
	}
	if d.Link, err = ndpOption(m.Data[16:], option); err != nil {
		return d, err
	}
	if !d.Advertisement && src.IsUnspecified() && d.Link != nil {
		return d, bad("nd source link-layer address", ndpSource, "none from the unspecified address")
	}
	return d, nil
}

// ndpOption returns the content of the last option of a kind, nil if there is none.
func ndpOption(b []byte, kind byte) (content []byte, err error) {
	for len(b) > 0 {
		if len(b) < ndpUnit || b[1] == 0 || int(b[1])*ndpUnit > len(b) {
			return nil, bad("nd option", len(b), "at least as long as its length says, which is not 0")
		}
		n := int(b[1]) * ndpUnit
		if b[0] == kind {
			content = b[ndpHeader:n:n]
		}
		b = b[n:]
	}
	return content, nil
}

// SolicitedNode is the group of those whose IPv6 addresses end like a (RFC 4291 2.7.1): solicitations for a go there.
func SolicitedNode(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom16([16]byte{0: 0xff, 1: 2, 11: 1, 12: 0xff, 13: b[13], 14: b[14], 15: b[15]})
}

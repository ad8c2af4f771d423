package ipoib

import (
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
)

// Types of the IPv6 neighbour discovery messages that resolve addresses (RFC 4861 4.3, 4.4).
const (
	neighbourSolicitation  = 135
	neighbourAdvertisement = 136
	optionSource           = 1
	optionTarget           = 2
	ndHopLimit             = 255 // RFC 4861 11.2: from this link, not routed
	optionLen              = 24  // RFC 4391 9.3: type, length 3, two reserved bytes, the address
)

// Flags of an advertisement (RFC 4861 4.4), in the four bytes after the checksum.
const (
	flagRouter    = 1 << 31
	flagSolicited = 1 << 30
	flagOverride  = 1 << 29
)

// discovery is a neighbour solicitation or advertisement over InfiniBand (RFC 4861, RFC 4391 9.3).
type discovery struct {
	Advertisement               bool
	Router, Solicited, Override bool // of advertisements
	Target                      netip.Addr
	// Link is the sender's own address in a solicitation, the target's in an advertisement, if HasLink.
	Link    Address
	HasLink bool
}

// appendPacket appends the complete IPv6 packet from src to dst to b.
func (d *discovery) appendPacket(b []byte, src, dst netip.Addr) []byte {
	t := d.Target.As16()
	m := eth.ICMP{Type: neighbourSolicitation, Data: append([]byte(nil), t[:]...)}
	option := byte(optionSource)
	if d.Advertisement {
		m.Type, option = neighbourAdvertisement, optionTarget
		m.Rest = bit(d.Router, flagRouter) | bit(d.Solicited, flagSolicited) | bit(d.Override, flagOverride)
	}
	if d.HasLink {
		m.Data = d.Link.Append(append(m.Data, option, optionLen/8, 0, 0))
	}
	body := m.AppendV6(nil, src, dst)
	from := len(b)
	b = append(b, make([]byte, eth.IPv6Len)...)
	eth.IPv6(b[from:]).Encode(0, 0, len(body), eth.ProtocolICMPv6, ndHopLimit, src.As16(), dst.As16())
	return append(b, body...)
}

func bit(on bool, v uint32) uint32 {
	if on {
		return v
	}
	return 0
}

// parseDiscovery reads the ICMPv6 message body of an IPv6 packet with these addresses and this hop limit.
// It makes the checks of RFC 4861 7.1. The error is a *formatError, or one of package eth.
func parseDiscovery(body []byte, src, dst netip.Addr, hopLimit uint8) (discovery, error) {
	m, err := eth.ParseICMPv6(body, src, dst)
	if err != nil {
		return discovery{}, err
	}
	d := discovery{Advertisement: m.Type == neighbourAdvertisement}
	switch {
	case m.Type != neighbourSolicitation && m.Type != neighbourAdvertisement:
		return d, &formatError{"nd type", int(m.Type), "135 or 136"}
	case m.Code != 0:
		return d, &formatError{"nd code", int(m.Code), "0"}
	case hopLimit != ndHopLimit:
		return d, &formatError{"nd hop limit", int(hopLimit), "255"}
	case len(m.Data) < 16:
		return d, &formatError{"nd message", len(body), "24 bytes at least"}
	}
	d.Target = netip.AddrFrom16([16]byte(m.Data))
	if d.Target.IsMulticast() {
		return d, &formatError{"nd target", int(m.Data[0]), "a unicast address"}
	}
	option := byte(optionSource)
	if d.Advertisement {
		option = optionTarget
		d.Router, d.Solicited, d.Override = m.Rest&flagRouter != 0, m.Rest&flagSolicited != 0, m.Rest&flagOverride != 0
		if d.Solicited && dst.IsMulticast() {
			return d, &formatError{"nd solicited flag", 1, "0 in what goes to a group"}
		}
	}
	for o := m.Data[16:]; len(o) > 0; {
		if len(o) < 8 || o[1] == 0 || int(o[1])*8 > len(o) {
			return d, &formatError{"nd option", len(o), "at least as long as its length says, which is not 0"}
		}
		if o[0] == option {
			if o[1] != optionLen/8 {
				return d, &formatError{"nd link-layer address option", int(o[1]), "3"}
			}
			d.Link, _ = parseAddress(o[4:])
			d.HasLink = true
		}
		o = o[int(o[1])*8:]
	}
	if !d.Advertisement && src.IsUnspecified() && d.HasLink {
		return d, &formatError{"nd source link-layer address", optionSource, "none from the unspecified address"}
	}
	return d, nil
}

// discoveryIn reports whether an IPv6 packet is a neighbour solicitation or advertisement, and returns the
// message.
func discoveryIn(h eth.IPv6, payload []byte) (body []byte, ok bool) {
	if h.NextHeader() != eth.ProtocolICMPv6 || len(payload) == 0 {
		return nil, false
	}
	return payload, payload[0] == neighbourSolicitation || payload[0] == neighbourAdvertisement
}

package ipoib

import (
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
)

const (
	linkOption = 2 + addressLen // content of the link-layer address option: two reserved bytes and the address (RFC 4391 9.3)

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
	e := eth.Discovery{Advertisement: d.Advertisement, Router: d.Router, Solicited: d.Solicited, Override: d.Override, Target: d.Target}
	if d.HasLink {
		e.Link = d.Link.Append([]byte{0, 0})
	}
	return e.AppendPacket(b, src, dst)
}

// parseDiscovery reads the ICMPv6 message body of an IPv6 packet with these addresses and this hop limit.
// It makes the checks of RFC 4861 7.1. The error is a *formatError, or one of package eth.
func parseDiscovery(body []byte, src, dst netip.Addr, hopLimit uint8) (discovery, error) {
	e, err := eth.ParseDiscovery(body, src, dst, hopLimit)
	if err != nil {
		return discovery{}, err
	}
	d := discovery{Advertisement: e.Advertisement, Router: e.Router, Solicited: e.Solicited, Override: e.Override, Target: e.Target}
	if e.Link == nil {
		return d, nil
	}
	if len(e.Link) != linkOption {
		return d, &formatError{"nd link-layer address option", (len(e.Link) + 2) / 8, "3"}
	}
	d.HasLink = true
	d.Link, err = parseAddress(e.Link[2:])
	return d, err
}

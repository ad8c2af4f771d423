package packet

import (
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
)

// version4 begins an IPv4 header without options.
const version4 = 0x45

// Rule selects the packets of a Port: UDP datagrams to an address and port that arrive through an interface,
// unfragmented and without IP options, addressed to this station.
type Rule struct {
	Addr      netip.Addr // with a zone where it is link-local
	Port      uint16
	Interface int
}

// ipLen returns the length of the packets' IP header.
func (r Rule) ipLen() int32 {
	if r.Addr.Is4() {
		return eth.IPv4Len
	}
	return eth.IPv6Len
}

// udpAt returns the offset of the UDP header in their frames.
func (r Rule) udpAt() int { return eth.EthernetLen + int(r.ipLen()) }

package device

import (
	"fmt"
	"net/netip"

	"github.com/softvpi/softvpi/internal/link"
)

// stationsOf are two stations on an Ethernet, in a VLAN unless vlan is 0.
func stationsOf(vlan uint16, v6 bool) (s [2]link.Station) {
	for i := range s {
		s[i] = link.Station{MAC: [6]byte{2, 0, 0, 0, 7, byte(i + 1)}, VLAN: vlan,
			Prefixes: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.78.0.%d/24", i+1))}}
		if v6 {
			s[i].Prefixes[0] = netip.MustParsePrefix(fmt.Sprintf("fd78::%d/64", i+1))
		}
	}
	return s
}

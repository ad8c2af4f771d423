package eswitch

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/wire/eth"
)

// The UDP ports of DHCP (RFC 2131, 4.1).
const (
	dhcpServer = 67
	dhcpClient = 68
)

// isDHCP reports whether a frame is taken for one of DHCP: "by checking UDP-Ports 67 and 68" (WinOF-2 24.4, VF's DHCP Redirections).
// The first fragment of a datagram is: without it nobody gets the rest together.
func isDHCP(h *header, b []byte) bool {
	b = b[h.network:]
	at := 0
	switch {
	case h.of == eth.TypeIPv4 && len(b) >= eth.IPv4Len:
		const fragment, offset = 6, 0x1fff
		if p := eth.IPv4(b); p.Protocol() != eth.ProtocolUDP || binary.BigEndian.Uint16(b[fragment:])&offset != 0 {
			return false
		}
		at = eth.IPv4(b).HeaderLen()
	case h.of == eth.TypeIPv6:
		var x eth.Headers
		if x.ParseIP(b); x.Version != 6 || x.Protocol != eth.ProtocolUDP || x.Data == 0 {
			return false
		}
		at = x.Transport
	default:
		return false
	}
	if len(b) < at+4 {
		return false
	}
	src, dst := binary.BigEndian.Uint16(b[at:]), binary.BigEndian.Uint16(b[at+2:])
	return src == dhcpServer || src == dhcpClient || dst == dhcpServer || dst == dhcpClient
}

// redirect takes a DHCP frame away from virtual functions, or from where one sends it, and leaves it to the physical function if that
// hears it: what is not for it reaches a promiscuous one alone, which the manual asks for. The physical function's own frames go where
// they should, or nobody would get an answer. It reports whether it changed anything.
func (s *Switch) redirect(from Port, to *Set) bool {
	if from.IsVF() {
		heard := to.Has(PF)
		*to = Set{}
		to.put(PF, heard)
		return true
	}
	changed := false
	for i := range to {
		changed = changed || to[i]&virtual[i] != 0
		to[i] &^= virtual[i]
	}
	return changed
}

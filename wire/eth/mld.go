package eth

import (
	"encoding/binary"
	"net/netip"
)

// Types of MLD messages, which are ICMPv6 messages (RFC 2710, RFC 3810). They are sent with hop
// limit 1, from a link-local address, behind a hop-by-hop header with the router alert option.
const (
	MLDQuery    = 130
	MLDv1Report = 131
	MLDv1Done   = 132
	MLDv2Report = 143
)

const mldLen = 24

// MLD is a query, report or done of MLD version 1 (RFC 2710).
type MLD struct {
	Type         uint8
	MaxRespDelay uint16     // milliseconds, in queries
	Group        netip.Addr // IPv6; :: in a general query
}

// Append adds the message to b; its checksum covers the addresses of the packet.
func (m *MLD) Append(b []byte, src, dst netip.Addr) []byte {
	i := ICMP{Type: m.Type, Rest: uint32(m.MaxRespDelay) << 16, Data: appendIPv6(nil, m.Group)}
	return i.AppendV6(b, src, dst)
}

// ParseMLD decodes a version 1 message, or the version 1 part of a version 2 query. The error is a
// *LengthError or a *FieldError.
func ParseMLD(b []byte, src, dst netip.Addr) (MLD, error) {
	if len(b) < mldLen {
		return MLD{}, short("mld message", len(b), mldLen)
	}
	i, err := ParseICMPv6(b, src, dst)
	if err != nil {
		return MLD{}, err
	}
	switch i.Type {
	case MLDQuery, MLDv1Report, MLDv1Done:
	default:
		return MLD{}, bad("mld type", int(i.Type), "query, report or done of version 1")
	}
	return MLD{Type: i.Type, MaxRespDelay: uint16(i.Rest >> 16), Group: netip.AddrFrom16([16]byte(i.Data))}, nil
}

// AppendMLDv2Report adds a version 2 report (RFC 3810 5.2) to b; it is sent to ff02::16.
func AppendMLDv2Report(b []byte, src, dst netip.Addr, records []GroupRecord) []byte {
	i := ICMP{Type: MLDv2Report, Rest: uint32(uint16(len(records))), Data: appendRecords(nil, records, appendIPv6)}
	return i.AppendV6(b, src, dst)
}

// ParseMLDv2Report decodes b as a version 2 report. The error is a *LengthError or a *FieldError.
func ParseMLDv2Report(b []byte, src, dst netip.Addr) ([]GroupRecord, error) {
	i, err := ParseICMPv6(b, src, dst)
	if err != nil {
		return nil, err
	}
	if i.Type != MLDv2Report {
		return nil, bad("mld type", int(i.Type), "143, version 2 report")
	}
	return parseRecords(i.Data, int(i.Rest&0xffff), 16)
}

// AppendRouterAlert adds to b the hop-by-hop header that precedes an MLD message: the option of RFC 2711
// with value 0, padded to eight bytes.
func AppendRouterAlert(b []byte, next uint8) []byte {
	b = append(b, next, 0, 5, 2)
	b = binary.BigEndian.AppendUint16(b, 0)
	return append(b, 1, 0)
}

// AppendMLDPacket adds the IPv6 packet of a message to b: hop limit 1, and the router alert option (RFC 3810 5). A source
// that is not valid is ::.
func AppendMLDPacket(b []byte, src, dst netip.Addr, message []byte) []byte {
	options := AppendRouterAlert(nil, ProtocolICMPv6)
	from := len(b)
	b = append(b, make([]byte, IPv6Len)...)
	IPv6(b[from:]).Encode(0, 0, len(options)+len(message), ProtocolHopByHop, 1, bytes16(src), bytes16(dst))
	return append(append(b, options...), message...)
}

// MLDMessage returns the message of an IPv6 packet that may be one of MLD: what follows its hop-by-hop header. ok is false if
// there is none.
func MLDMessage(h IPv6, payload []byte) (message []byte, ok bool) {
	if h.NextHeader() != ProtocolHopByHop || len(payload) < 8 || payload[0] != ProtocolICMPv6 {
		return nil, false
	}
	n := (int(payload[1]) + 1) * 8
	if n >= len(payload) {
		return nil, false
	}
	return payload[n:], true
}

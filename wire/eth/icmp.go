package eth

import (
	"encoding/binary"
	"net/netip"
)

// Types and codes of ICMP (RFC 792) and ICMPv6 (RFC 4443) that concern RoCE.
const (
	ICMPEchoReply       = 0
	ICMPUnreachable     = 3
	ICMPEcho            = 8
	ICMPNetUnreachable  = 0
	ICMPHostUnreachable = 1
	ICMPPortUnreachable = 3
	ICMPFragNeeded      = 4 // the low 16 bits of Rest are the next hop's MTU
	ICMPv6Unreachable   = 1
	ICMPv6PacketTooBig  = 2 // Rest is the MTU
	ICMPv6EchoRequest   = 128
	ICMPv6EchoReply     = 129
	ICMPv6NoRoute       = 0
	ICMPv6AddrUnreach   = 3
	ICMPv6PortUnreach   = 4
	icmpLen             = 8
	icmpChecksum        = 2
)

// ICMP is an ICMP or ICMPv6 message. In errors, Data begins with the packet that caused it.
type ICMP struct {
	Type, Code uint8
	Rest       uint32 // the four bytes after the checksum
	Data       []byte
}

// Append adds an ICMP message with its checksum to b.
func (m *ICMP) Append(b []byte) []byte {
	return m.append(b, func(p []byte) uint16 { return Checksum(p) })
}

// AppendV6 adds an ICMPv6 message to b; its checksum covers the addresses too.
func (m *ICMP) AppendV6(b []byte, src, dst netip.Addr) []byte {
	return m.append(b, func(p []byte) uint16 { return PseudoChecksum(src, dst, ProtocolICMPv6, p) })
}

func (m *ICMP) append(b []byte, checksum func([]byte) uint16) []byte {
	from := len(b)
	b = append(b, m.Type, m.Code, 0, 0)
	b = binary.BigEndian.AppendUint32(b, m.Rest)
	b = append(b, m.Data...)
	binary.BigEndian.PutUint16(b[from+icmpChecksum:], checksum(b[from:]))
	return b
}

// ParseICMP decodes b as an ICMP message; Data shares b's memory. The error is a *LengthError or a
// *FieldError.
func ParseICMP(b []byte) (ICMP, error) {
	if len(b) < icmpLen {
		return ICMP{}, short("icmp message", len(b), icmpLen)
	}
	if Checksum(b) != 0 {
		return ICMP{}, bad("icmp checksum", int(binary.BigEndian.Uint16(b[icmpChecksum:])), "that of the message")
	}
	return parseICMP(b), nil
}

// ParseICMPv6 decodes b as an ICMPv6 message. The error is a *LengthError or a *FieldError.
func ParseICMPv6(b []byte, src, dst netip.Addr) (ICMP, error) {
	if len(b) < icmpLen {
		return ICMP{}, short("icmpv6 message", len(b), icmpLen)
	}
	if PseudoChecksum(src, dst, ProtocolICMPv6, b) != 0 {
		return ICMP{}, bad("icmpv6 checksum", int(binary.BigEndian.Uint16(b[icmpChecksum:])), "that of the message and its addresses")
	}
	return parseICMP(b), nil
}

func parseICMP(b []byte) ICMP {
	return ICMP{Type: b[0], Code: b[1], Rest: binary.BigEndian.Uint32(b[4:]), Data: b[icmpLen:]}
}

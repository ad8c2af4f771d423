package eth

import (
	"encoding/binary"
	"net/netip"
)

// IPv6Len is the length of an IPv6 header.
const IPv6Len = 40

const (
	ip6Version  = 0 // version, traffic class, flow label
	ip6Length   = 4
	ip6Next     = 6
	ip6HopLimit = 7
	ip6Src      = 8
	ip6Dst      = 24
)

// IPv6 is a view of an IPv6 header (RFC 8200), IPv6Len bytes.
type IPv6 []byte

// TrafficClass is the traffic class: DSCP in the high six bits, ECN in the low two.
func (h IPv6) TrafficClass() uint8 { return uint8(binary.BigEndian.Uint16(h) >> 4) }

// FlowLabel is the flow label, 20 bits.
func (h IPv6) FlowLabel() uint32 { return binary.BigEndian.Uint32(h) & 0xfffff }

// PayloadLen is the length of what follows the header.
func (h IPv6) PayloadLen() int { return int(binary.BigEndian.Uint16(h[ip6Length:])) }

// NextHeader says what follows the header.
func (h IPv6) NextHeader() uint8 { return h[ip6Next] }

// HopLimit is the hop limit.
func (h IPv6) HopLimit() uint8 { return h[ip6HopLimit] }

// Src is the source address.
func (h IPv6) Src() netip.Addr { return netip.AddrFrom16([16]byte(h[ip6Src:])) }

// Dst is the destination address.
func (h IPv6) Dst() netip.Addr { return netip.AddrFrom16([16]byte(h[ip6Dst:])) }

// SetPayloadLen sets the length of what follows the header.
func (h IPv6) SetPayloadLen(n int) { binary.BigEndian.PutUint16(h[ip6Length:], uint16(n)) }

// ip6Word is the first word of a header: version, traffic class and flow label.
func ip6Word(class uint8, flowLabel uint32) uint32 {
	return 6<<28 | uint32(class)<<20 | flowLabel&0xfffff
}

// Encode writes the whole header.
func (h IPv6) Encode(class uint8, flowLabel uint32, payloadLen int, next, hopLimit uint8, src, dst [16]byte) {
	_ = h[IPv6Len-1]
	binary.BigEndian.PutUint32(h, ip6Word(class, flowLabel))
	h.SetPayloadLen(payloadLen)
	h[ip6Next], h[ip6HopLimit] = next, hopLimit
	*(*[16]byte)(h[ip6Src:]), *(*[16]byte)(h[ip6Dst:]) = src, dst
}

// ParseIPv6 checks the version and the lengths and returns the header and the payload without
// Ethernet's padding; both share b's memory. Extension headers count as payload. The error
// is a *LengthError or a *FieldError.
func ParseIPv6(b []byte) (h IPv6, payload []byte, err error) {
	if len(b) < IPv6Len {
		return nil, nil, short("ipv6 header", len(b), IPv6Len)
	}
	if v := b[0] >> 4; v != 6 {
		return nil, nil, bad("ip version", int(v), "6")
	}
	h = IPv6(b[:IPv6Len])
	n := h.PayloadLen()
	if n > len(b)-IPv6Len {
		return nil, nil, short("ipv6 payload", len(b)-IPv6Len, n)
	}
	return h, b[IPv6Len : IPv6Len+n], nil
}

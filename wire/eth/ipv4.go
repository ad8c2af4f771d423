package eth

import (
	"encoding/binary"
	"net/netip"
)

// Protocols that an IP packet carries.
const (
	ProtocolHopByHop = 0 // IPv6 extension header
	ProtocolICMP     = 1
	ProtocolIGMP     = 2
	ProtocolTCP      = 6
	ProtocolUDP      = 17
	ProtocolICMPv6   = 58
)

// IPv4Len is the length of an IPv4 header without options.
const IPv4Len = 20

const (
	ip4Version  = 0
	ip4ToS      = 1
	ip4Length   = 2
	ip4ID       = 4
	ip4Flags    = 6
	ip4TTL      = 8
	ip4Protocol = 9
	ip4Checksum = 10
	ip4Src      = 12
	ip4Dst      = 16

	ip4DontFragment  = 0x4000
	ip4MoreFragments = 0x2000
)

// IPv4 is a view of an IPv4 header (RFC 791), at least IPv4Len bytes.
type IPv4 []byte

// HeaderLen is the length of the header with its options, in bytes.
func (h IPv4) HeaderLen() int { return int(h[ip4Version]&0x0f) * 4 }

// ToS is the type of service: DSCP in the high six bits, ECN in the low two.
func (h IPv4) ToS() uint8 { return h[ip4ToS] }

// TotalLen is the length of header and payload.
func (h IPv4) TotalLen() int { return int(binary.BigEndian.Uint16(h[ip4Length:])) }

// ID is the identification, which the ICRC covers.
func (h IPv4) ID() uint16 { return binary.BigEndian.Uint16(h[ip4ID:]) }

// DontFragment is the DF bit.
func (h IPv4) DontFragment() bool { return binary.BigEndian.Uint16(h[ip4Flags:])&ip4DontFragment != 0 }

// Fragment reports whether this is a fragment of a packet.
func (h IPv4) Fragment() bool {
	return binary.BigEndian.Uint16(h[ip4Flags:])&(ip4MoreFragments|0x1fff) != 0
}

// TTL is the time to live.
func (h IPv4) TTL() uint8 { return h[ip4TTL] }

// Protocol says what the packet carries.
func (h IPv4) Protocol() uint8 { return h[ip4Protocol] }

// Checksum is the header checksum.
func (h IPv4) Checksum() uint16 { return binary.BigEndian.Uint16(h[ip4Checksum:]) }

// Src is the source address.
func (h IPv4) Src() netip.Addr { return netip.AddrFrom4([4]byte(h[ip4Src:])) }

// Dst is the destination address.
func (h IPv4) Dst() netip.Addr { return netip.AddrFrom4([4]byte(h[ip4Dst:])) }

// SetToS sets the type of service, without the checksum.
func (h IPv4) SetToS(v uint8) { h[ip4ToS] = v }

// SetTotalLen sets the length of header and payload, without the checksum.
func (h IPv4) SetTotalLen(n int) { binary.BigEndian.PutUint16(h[ip4Length:], uint16(n)) }

// SetID sets the identification, without the checksum.
func (h IPv4) SetID(id uint16) { binary.BigEndian.PutUint16(h[ip4ID:], id) }

// SetChecksum computes the header checksum and sets it.
func (h IPv4) SetChecksum() {
	h.PutChecksum(0)
	h.PutChecksum(Checksum(h[:h.HeaderLen()]))
}

// PutChecksum sets the header checksum to v, right or wrong.
func (h IPv4) PutChecksum(v uint16) { binary.BigEndian.PutUint16(h[ip4Checksum:], v) }

// ChecksumOK reports whether the header checksum is right.
func (h IPv4) ChecksumOK() bool { return Checksum(h[:h.HeaderLen()]) == 0 }

// Encode writes a complete header of IPv4Len bytes with DF set and a correct checksum.
func (h IPv4) Encode(tos uint8, totalLen int, id uint16, ttl, protocol uint8, src, dst [4]byte) {
	_ = h[IPv4Len-1]
	h[ip4Version] = 4<<4 | IPv4Len/4
	h[ip4ToS] = tos
	h.SetTotalLen(totalLen)
	h.SetID(id)
	binary.BigEndian.PutUint16(h[ip4Flags:], ip4DontFragment)
	h[ip4TTL], h[ip4Protocol] = ttl, protocol
	*(*[4]byte)(h[ip4Src:]), *(*[4]byte)(h[ip4Dst:]) = src, dst
	h.SetChecksum()
}

// ParseIPv4 checks the version, the lengths and the checksum and returns the header with its options and
// the payload without Ethernet's padding; both share b's memory. The error is a *LengthError or a
// *FieldError.
func ParseIPv4(b []byte) (h IPv4, payload []byte, err error) {
	if len(b) < IPv4Len {
		return nil, nil, short("ipv4 header", len(b), IPv4Len)
	}
	h = IPv4(b)
	n, total := h.HeaderLen(), h.TotalLen()
	switch {
	case b[0]>>4 != 4:
		return nil, nil, bad("ip version", int(b[0]>>4), "4")
	case n < IPv4Len:
		return nil, nil, bad("ipv4 header length", n, "at least 20")
	case total < n:
		return nil, nil, bad("ipv4 total length", total, "at least the header's")
	case total > len(b):
		return nil, nil, short("ipv4 packet", len(b), total)
	case !h.ChecksumOK():
		return nil, nil, bad("ipv4 header checksum", int(h.Checksum()), "that of the header")
	}
	return h[:n], b[n:total], nil
}

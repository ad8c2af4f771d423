package eth

import (
	"encoding/binary"
	"net/netip"
)

// UDPLen is the length of a UDP header.
const UDPLen = 8

// PortRoCEv2 is the UDP destination port of RoCE v2 (IBA annex A17).
const PortRoCEv2 = 4791

// UDP is a view of a UDP header (RFC 768), UDPLen bytes.
type UDP []byte

// SrcPort is the source port.
func (h UDP) SrcPort() uint16 { return binary.BigEndian.Uint16(h) }

// DstPort is the destination port.
func (h UDP) DstPort() uint16 { return binary.BigEndian.Uint16(h[2:]) }

// Length is the length of header and payload.
func (h UDP) Length() int { return int(binary.BigEndian.Uint16(h[4:])) }

// Checksum is the checksum, 0 for none.
func (h UDP) Checksum() uint16 { return binary.BigEndian.Uint16(h[6:]) }

// SetChecksum sets the checksum.
func (h UDP) SetChecksum(v uint16) { binary.BigEndian.PutUint16(h[6:], v) }

// SetLength sets the length of header and payload.
func (h UDP) SetLength(n int) { binary.BigEndian.PutUint16(h[4:], uint16(n)) }

// Encode writes the whole header without a checksum.
func (h UDP) Encode(src, dst uint16, length int) {
	_ = h[UDPLen-1]
	binary.BigEndian.PutUint16(h, src)
	binary.BigEndian.PutUint16(h[2:], dst)
	h.SetLength(length)
	h.SetChecksum(0)
}

// UDPChecksum is the checksum of a datagram, header included, whose checksum field is 0. It is never 0,
// which would mean "no checksum".
func UDPChecksum(src, dst netip.Addr, datagram []byte) uint16 {
	if c := PseudoChecksum(src, dst, ProtocolUDP, datagram); c != 0 {
		return c
	}
	return 0xffff
}

// ParseUDP checks the lengths and returns the header and the payload, which share b's memory. The caller
// checks the checksum: RoCE allows packets without one, over IPv6 too. The error is a *LengthError or a
// *FieldError.
func ParseUDP(b []byte) (h UDP, payload []byte, err error) {
	if len(b) < UDPLen {
		return nil, nil, short("udp header", len(b), UDPLen)
	}
	h = UDP(b[:UDPLen])
	n := h.Length()
	if n < UDPLen {
		return nil, nil, bad("udp length", n, "at least 8")
	}
	if n > len(b) {
		return nil, nil, short("udp datagram", len(b), n)
	}
	return h, b[UDPLen:n], nil
}

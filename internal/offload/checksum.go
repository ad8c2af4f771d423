package offload

import (
	"encoding/binary"
	"math/bits"

	"github.com/softvpi/softvpi/wire/eth"
)

// add adds p to a ones' complement sum of native words (RFC 1071 2: byte order does not matter until the
// end). Only the last piece may have an odd length.
func add(s uint64, p []byte) uint64 {
	var c uint64
	for len(p) >= 64 {
		q := p[:64:64]
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(q), 0)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(q[8:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(q[16:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(q[24:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(q[32:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(q[40:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(q[48:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(q[56:]), c)
		s += c
		p = p[64:]
	}
	for len(p) >= 8 {
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(p), 0)
		s += c
		p = p[8:]
	}
	if len(p) == 0 {
		return s
	}
	var last uint64
	for n := len(p) - 1; n >= 0; n-- {
		last = last<<8 | uint64(p[n])
	}
	s, c = bits.Add64(s, last, 0)
	return s + c
}

// fold reduces a sum to 16 bits, in network byte order.
func fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return bits.ReverseBytes16(uint16(s))
}

// pseudo returns the sum of the pseudo header of a packet with n bytes of payload (RFC 9293 3.1, RFC 8200
// 8.1).
func pseudo(packet []byte, protocol uint8, n int) uint64 {
	addresses := packet[12:20]
	if packet[0]>>4 == 6 {
		addresses = packet[8:40]
	}
	var rest [8]byte
	binary.BigEndian.PutUint32(rest[:], uint32(n))
	rest[7] = protocol
	return add(add(0, addresses), rest[:])
}

// Complete makes the checksum that a packet of the system still needs. The error is a *formatError.
func Complete(h Header, packet []byte) error {
	at := h.ChecksumStart + h.ChecksumAt
	if h.ChecksumStart < eth.IPv4Len || at+2 > len(packet) {
		return &formatError{"checksum", at, "a place within the packet"}
	}
	c := ^fold(add(0, packet[h.ChecksumStart:]))
	if c == 0 { // RFC 768: 0 means no checksum; 0xffff is equivalent
		c = 0xffff
	}
	binary.BigEndian.PutUint16(packet[at:], c)
	return nil
}

// checked says what is known of the TCP or UDP checksum of a packet.
type checked uint8

// The possible results.
const (
	unknown checked = iota // it has none, or is in a fragment
	right
	wrong
)

// check looks at the TCP or UDP checksum of a packet, whose headers it does not trust.
func check(packet []byte) checked {
	protocol, at, end, ok := transport(packet)
	if !ok {
		return unknown
	}
	body := packet[at:end]
	switch {
	case protocol == eth.ProtocolTCP && len(body) >= tcpLen:
	case protocol == eth.ProtocolUDP && len(body) >= eth.UDPLen:
		if binary.BigEndian.Uint16(body[6:]) == 0 {
			return unknown
		}
	default:
		return unknown
	}
	if fold(add(pseudo(packet, protocol, len(body)), body)) != 0xffff {
		return wrong
	}
	return right
}

// transport returns the protocol of an IP packet's payload, and where it begins and ends. ok is false for
// fragments and packets with extension headers, which are not examined.
func transport(p []byte) (protocol uint8, at, end int, ok bool) {
	if len(p) < eth.IPv4Len {
		return 0, 0, 0, false
	}
	switch p[0] >> 4 {
	case 4:
		h := eth.IPv4(p)
		at, end = h.HeaderLen(), h.TotalLen()
		return h.Protocol(), at, end, at >= eth.IPv4Len && at <= end && end <= len(p) && !h.Fragment()
	case 6:
		if len(p) < eth.IPv6Len {
			return 0, 0, 0, false
		}
		h := eth.IPv6(p)
		end = eth.IPv6Len + h.PayloadLen()
		return h.NextHeader(), eth.IPv6Len, end, end <= len(p)
	}
	return 0, 0, 0, false
}

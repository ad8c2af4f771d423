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

// Sums say what is known of a packet's checksums, and what remains to be done for them.
type Sums uint8

// The bits. Those of the transport are about TCP and UDP.
const (
	// MakeIP and MakeTransport: the checksum is still to be made. The transport's field has the sum of the pseudo header.
	MakeIP Sums = 1 << iota
	MakeTransport
	// GoodIP and GoodTransport: the checksum was found to be right.
	GoodIP
	GoodTransport
	// BadIP and BadTransport: it was found to be wrong.
	BadIP
	BadTransport
)

// Check looks at the checksums of a packet with these headers. It says nothing of what is not there: UDP packets may have
// no checksum, and fragments and packets with IPv6 extension headers are not examined.
func Check(h *eth.Headers, b []byte) (s Sums) {
	if h.Version == 4 {
		s = CheckIP(h, b)
	}
	return s | CheckTransport(h, b)
}

// CheckIP looks at the checksum of an IPv4 header.
func CheckIP(h *eth.Headers, b []byte) Sums {
	if h.Version != 4 {
		return 0
	}
	if fold(add(0, b[h.Network:h.Transport])) != 0xffff {
		return BadIP
	}
	return GoodIP
}

// CheckTransport looks at the checksum of TCP or UDP.
func CheckTransport(h *eth.Headers, b []byte) Sums {
	if h.Data == 0 || h.Version == 6 && h.Options {
		return 0
	}
	body := b[h.Transport:h.End]
	if h.Protocol == eth.ProtocolUDP {
		udp := eth.UDP(body)
		if udp.Checksum() == 0 {
			return 0
		}
		body = body[:udp.Length()]
	}
	if fold(add(pseudo(b[h.Network:], h.Protocol, len(body)), body)) != 0xffff {
		return BadTransport
	}
	return GoodTransport
}

// Make makes the checksums that a packet still needs, in its memory.
func Make(s Sums, h *eth.Headers, b []byte) {
	if h.Data != 0 {
		MakeApart(s, h, b[:h.Data], b[h.Data:h.End])
	} else if s&MakeIP != 0 && h.Version == 4 {
		eth.IPv4(b[h.Network:h.Transport]).SetChecksum()
	}
}

// MakeApart is Make for a TCP or UDP packet whose headers are apart from its payload.
func MakeApart(s Sums, h *eth.Headers, head, body []byte) {
	if s&MakeIP != 0 && h.Version == 4 {
		eth.IPv4(head[h.Network:h.Transport]).SetChecksum()
	}
	at := checksumAt(h)
	if s&MakeTransport == 0 || at == 0 {
		return
	}
	p := head[h.Transport:h.Data]
	if h.Protocol == eth.ProtocolUDP {
		body = body[:eth.UDP(p).Length()-eth.UDPLen]
	}
	// The sum of the pseudo header is in its place, or what somebody has made of it: what counts are the addresses.
	p[at], p[at+1] = 0, 0
	sum := pseudo(head[h.Network:], h.Protocol, len(p)+len(body))
	c := ^fold(add(add(sum, p), body))
	if c == 0 && h.Protocol == eth.ProtocolUDP { // RFC 768: 0 means no checksum; 0xffff is equivalent
		c = 0xffff
	}
	binary.BigEndian.PutUint16(p[at:], c)
}

// checksumAt is where a TCP or UDP header has its checksum; 0: it is neither.
func checksumAt(h *eth.Headers) int {
	switch h.Protocol {
	case eth.ProtocolTCP:
		return tcpChecksum
	case eth.ProtocolUDP:
		return udpChecksum
	}
	return 0
}

package offload

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/wire/eth"
)

const (
	tcpLen       = 20
	tcpSequence  = 4
	tcpAck       = 8
	tcpOffset    = 12
	tcpFlags     = 13
	tcpChecksum  = 16
	udpChecksum  = 6
	maxHeaders   = 60 + 60 // of IPv4 and TCP with all options
	flagsNotLast = flagFIN | flagPSH
)

// Flags of TCP (RFC 9293 3.1, RFC 3168).
const (
	flagFIN = 0x01
	flagPSH = 0x08
	flagACK = 0x10
	flagCWR = 0x80
)

// Segments splits a large TCP packet of the system into segments, like the large-send offload (WinOF 5.50,
// 4.9.3: "the adapter re-segments the message into multiple TCP packets"), or a burst of UDP datagrams. The zero value is
// ready for Begin.
type Segments struct {
	packet   []byte // headers of all
	protocol uint8
	at       int // of the TCP or UDP header
	headers  int
	size     int
	next     int // offset of the remaining payload
	number   uint16
	head     [maxHeaders]byte
}

// Begin begins to cut a packet, which has to stay as it is until the last Next. The error is a *formatError.
func (s *Segments) Begin(h Header, packet []byte) error {
	protocol, at, end, ok := transport(packet)
	if !ok || !h.Kind.of(protocol, packet[0]>>4) || end-at < eth.UDPLen || protocol == eth.ProtocolTCP && end-at < tcpLen {
		return &formatError{"packet to cut", len(packet), "a whole TCP or UDP packet of its kind"}
	}
	if h.Segment < 1 {
		return &formatError{"segment", h.Segment, "1 byte at least"}
	}
	headers := at + eth.UDPLen
	if protocol == eth.ProtocolTCP {
		headers = at + int(packet[at+tcpOffset]>>4)*4
		if headers < at+tcpLen || headers > end || headers > maxHeaders {
			return &formatError{"tcp header", headers - at, "20 to 60 bytes, within the packet"}
		}
	}
	*s = Segments{packet: packet[:end], protocol: protocol, at: at, headers: headers, size: h.Segment, next: headers, head: s.head}
	copy(s.head[:], packet[:headers])
	return nil
}

// of reports whether packets of a protocol and an IP version may be of the kind.
func (k Kind) of(protocol, version uint8) bool {
	switch k {
	case TCPv4:
		return protocol == eth.ProtocolTCP && version == 4
	case TCPv6:
		return protocol == eth.ProtocolTCP && version == 6
	case UDP:
		return protocol == eth.ProtocolUDP
	}
	return false
}

// Next returns the next segment in two pieces: its headers, valid until the next call, and payload in the
// packet's memory; ok is false after the last one. A segment differs from the large packet in lengths,
// identification, sequence number, checksums, and the flags that only the first or the last has. UDP datagrams without a
// checksum get none.
func (s *Segments) Next() (head, body []byte, ok bool) {
	first := s.next == s.headers
	if s.next >= len(s.packet) && !first {
		return nil, nil, false
	}
	end := min(s.next+s.size, len(s.packet))
	body = s.packet[s.next:end]
	head = s.head[:s.headers]
	s.lengths(head, len(body))
	if s.protocol == eth.ProtocolTCP {
		s.tcp(head[s.at:], first, end == len(s.packet))
		s.sum(head, body, tcpChecksum)
	} else {
		eth.UDP(head[s.at:]).SetLength(eth.UDPLen + len(body))
		if eth.UDP(s.packet[s.at:]).Checksum() != 0 {
			s.sum(head, body, udpChecksum)
		}
	}
	s.number++
	s.next = end
	if end == s.headers { // a packet without payload is also a segment, and the only one
		s.next++
	}
	return head, body, true
}

// tcp writes what differs in the TCP header of a segment.
func (s *Segments) tcp(head []byte, first, last bool) {
	sequence := binary.BigEndian.Uint32(s.packet[s.at+tcpSequence:]) + uint32(s.next-s.headers)
	binary.BigEndian.PutUint32(head[tcpSequence:], sequence)
	flags := s.packet[s.at+tcpFlags]
	if !last {
		flags &^= flagsNotLast
	}
	if !first {
		flags &^= flagCWR
	}
	head[tcpFlags] = flags
}

// sum writes the checksum of a segment, at an offset in its TCP or UDP header.
func (s *Segments) sum(head, body []byte, at int) {
	h := head[s.at:]
	h[at], h[at+1] = 0, 0
	c := ^fold(add(add(pseudo(head, s.protocol, len(h)+len(body)), h), body))
	if c == 0 && s.protocol == eth.ProtocolUDP { // which would mean that there is none (RFC 768)
		c = 0xffff
	}
	binary.BigEndian.PutUint16(h[at:], c)
}

// lengths writes the IP header of a segment with n bytes of payload.
func (s *Segments) lengths(head []byte, n int) {
	if head[0]>>4 == 6 {
		binary.BigEndian.PutUint16(head[4:], uint16(s.headers-eth.IPv6Len+n))
		return
	}
	h := eth.IPv4(head[:s.at])
	h.SetTotalLen(s.headers + n)
	h.SetID(eth.IPv4(s.packet).ID() + s.number)
	h.SetChecksum()
}

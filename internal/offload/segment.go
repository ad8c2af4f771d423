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
// 4.9.3: "the adapter re-segments the message into multiple TCP packets"). The zero value is ready for
// Begin.
type Segments struct {
	packet  []byte // headers of all
	at      int    // of the TCP header
	headers int
	size    int
	next    int // offset of the remaining payload
	number  uint16
	head    [maxHeaders]byte
}

// Begin begins to cut a packet, which has to stay as it is until the last Next. The error is a *formatError.
func (s *Segments) Begin(h Header, packet []byte) error {
	protocol, at, end, ok := transport(packet)
	want := uint8(4)
	if h.Kind == TCPv6 {
		want = 6
	}
	switch {
	case !ok || protocol != eth.ProtocolTCP || packet[0]>>4 != want || len(packet)-at < tcpLen:
		return &formatError{"packet to cut", len(packet), "a whole TCP packet of its kind"}
	case h.Segment < 1:
		return &formatError{"segment", h.Segment, "1 byte at least"}
	}
	headers := at + int(packet[at+tcpOffset]>>4)*4
	if headers < at+tcpLen || headers > end || headers > maxHeaders {
		return &formatError{"tcp header", headers - at, "20 to 60 bytes, within the packet"}
	}
	*s = Segments{packet: packet[:end], at: at, headers: headers, size: h.Segment, next: headers, head: s.head}
	copy(s.head[:], packet[:headers])
	return nil
}

// Next returns the next segment in two pieces: its headers, valid until the next call, and payload in the
// packet's memory; ok is false after the last one. A segment differs from the large packet in lengths,
// identification, sequence number, checksums, and the flags that only the first or the last has.
func (s *Segments) Next() (head, body []byte, ok bool) {
	first := s.next == s.headers
	if s.next >= len(s.packet) && !first {
		return nil, nil, false
	}
	end := min(s.next+s.size, len(s.packet))
	body = s.packet[s.next:end]
	head = s.head[:s.headers]
	tcp := head[s.at:]
	sequence := binary.BigEndian.Uint32(s.packet[s.at+tcpSequence:]) + uint32(s.next-s.headers)
	binary.BigEndian.PutUint32(tcp[tcpSequence:], sequence)
	flags := s.packet[s.at+tcpFlags]
	if end < len(s.packet) {
		flags &^= flagsNotLast
	}
	if !first {
		flags &^= flagCWR
	}
	tcp[tcpFlags] = flags
	s.lengths(head, len(body))
	tcp[tcpChecksum], tcp[tcpChecksum+1] = 0, 0
	sum := add(add(pseudo(head, eth.ProtocolTCP, len(tcp)+len(body)), tcp), body)
	binary.BigEndian.PutUint16(tcp[tcpChecksum:], ^fold(sum))
	s.number++
	s.next = end
	if end == s.headers { // a packet without payload is also a segment, and the only one
		s.next++
	}
	return head, body, true
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

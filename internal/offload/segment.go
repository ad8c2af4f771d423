package offload

import (
	"encoding/binary"
	"fmt"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

const (
	tcpLen      = 20
	tcpSequence = 4
	tcpAck      = 8
	tcpOffset   = 12
	tcpFlags    = 13
	tcpChecksum = 16
	udpChecksum = 6
	// MaxHeaders is how many bytes of headers a packet to be cut may have: Ethernet with four tags, IPv4 and TCP with all
	// options.
	MaxHeaders = 30 + 60 + 60
	// MaxTunnelHeaders is how many those of a packet in a tunnel may be: those of the tunnel, over IPv6 or IPv4 with options, come before.
	MaxTunnelHeaders = 30 + 60 + 8 + 8 + MaxHeaders
	flagsNotLast     = flagFIN | flagPSH
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
	packet  []byte // headers of all, Ethernet's included if there are any
	of      eth.Headers
	headers int
	size    int
	next    int // offset of the remaining payload
	number  uint16
	outer   eth.Headers // of a tunnel; Version 0: there is none
	kind    tunnel.Kind
	head    [MaxTunnelHeaders]byte
}

// Begin begins to cut an IP packet, which has to stay as it is until the last Next. The error is a *formatError.
func (s *Segments) Begin(h Header, packet []byte) error {
	var e eth.Headers
	e.ParseIP(packet)
	if h.Segment < 1 {
		return &formatError{"segment", h.Segment, "1 byte at least"}
	}
	return s.BeginFrame(Task{Kind: h.Kind, Segment: uint16(h.Segment)}, &e, packet)
}

// BeginFrame begins to cut a frame with these headers, which has to stay as it is until the last Next. The error is a
// *formatError.
func (s *Segments) BeginFrame(t Task, h *eth.Headers, frame []byte) error {
	if t.Kind.InTunnel() {
		var f tunnel.Frame
		if !tunnelAny(&f, h, frame) {
			return &formatError{"packet to cut", len(frame), "one in a tunnel"}
		}
		t.Kind = t.Kind.Inner()
		return s.BeginTunnel(t, &f, frame)
	}
	if h.Data > MaxHeaders {
		return &formatError{"headers", h.Data, fmt.Sprintf("at most %d bytes", MaxHeaders)}
	}
	return s.begin(t, h, frame)
}

// begin begins to cut a frame whose headers are not too long.
func (s *Segments) begin(t Task, h *eth.Headers, frame []byte) error {
	if h.Data == 0 || !t.Kind.of(h.Protocol, h.Version) || h.Version == 6 && h.Options {
		return &formatError{"packet to cut", len(frame), "a whole TCP or UDP packet of its kind"}
	}
	if t.Segment < 1 {
		return &formatError{"segment", int(t.Segment), "1 byte at least"}
	}
	s.outer.Version = 0
	s.packet, s.of, s.headers, s.size, s.next, s.number = frame[:h.End], *h, h.Data, int(t.Segment), h.Data, 0
	copy(s.head[:], frame[:h.Data])
	return nil
}

// End stops cutting.
func (s *Segments) End() { s.packet = nil }

// Cutting reports whether there is another segment.
func (s *Segments) Cutting() bool {
	return s.packet != nil && (s.next < len(s.packet) || s.next == s.headers)
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
	if !s.Cutting() {
		return nil, nil, false
	}
	end := min(s.next+s.size, len(s.packet))
	body = s.packet[s.next:end]
	head = s.head[:s.headers]
	at := s.of.Transport
	lengths(&s.of, head, len(body), s.number, s.packet)
	if s.of.Protocol == eth.ProtocolTCP {
		tcp(head[at:], s.packet[at:], uint32(s.next-s.headers), first, end == len(s.packet))
		sum(&s.of, head, body, tcpChecksum)
	} else {
		eth.UDP(head[at:]).SetLength(eth.UDPLen + len(body))
		if eth.UDP(s.packet[at:]).Checksum() != 0 {
			sum(&s.of, head, body, udpChecksum)
		}
	}
	if s.outer.Version != 0 {
		s.wrap(head, body)
	}
	s.number++
	s.next = end
	if end == s.headers { // a packet without payload is also a segment, and the only one
		s.next++
	}
	return head, body, true
}

// tcp writes what differs in the TCP header of a segment, which begins at an offset of the packet's payload. packet is the packet's.
func tcp(head, packet []byte, offset uint32, first, last bool) {
	binary.BigEndian.PutUint32(head[tcpSequence:], binary.BigEndian.Uint32(packet[tcpSequence:])+offset)
	flags := packet[tcpFlags]
	if !last {
		flags &^= flagsNotLast
	}
	if !first {
		flags &^= flagCWR
	}
	head[tcpFlags] = flags
}

// sum writes the checksum of a segment, at an offset in its TCP or UDP header.
func sum(of *eth.Headers, head, body []byte, at int) {
	h := head[of.Transport:]
	h[at], h[at+1] = 0, 0
	c := ^fold(add(add(pseudo(head[of.Network:], of.Protocol, len(h)+len(body)), h), body))
	if c == 0 && of.Protocol == eth.ProtocolUDP { // which would mean that there is none (RFC 768)
		c = 0xffff
	}
	binary.BigEndian.PutUint16(h[at:], c)
}

// lengths writes the IP header of segment number with n bytes of payload. packet is the one that is cut.
func lengths(of *eth.Headers, head []byte, n int, number uint16, packet []byte) {
	ip := head[of.Network:of.Transport]
	n += len(head) - of.Network
	if of.Version == 6 {
		eth.IPv6(ip).SetPayloadLen(n - eth.IPv6Len)
		return
	}
	h := eth.IPv4(ip)
	h.SetTotalLen(n)
	h.SetID(eth.IPv4(packet[of.Network:]).ID() + number)
	h.SetChecksum()
}

// Segment makes the headers of one segment of a large TCP packet of those of the packet in head, whatever lengths and checksums these
// have: of segment number, from 0, whose payload is body and begins at an offset in the packet's. It returns false for headers
// that are not those of TCP alone. Unlike Segments it needs nothing but the segment's own payload.
func Segment(head, body []byte, number, offset uint32, last bool) bool {
	var h eth.Headers
	if !h.Parse(head) || len(head) < h.Network+eth.IPv4Len {
		return false
	}
	switch ip := head[h.Network:]; {
	case h.Type == eth.TypeIPv4:
		eth.IPv4(ip).SetTotalLen(len(ip))
	case h.Type == eth.TypeIPv6 && len(ip) >= eth.IPv6Len:
		eth.IPv6(ip).SetPayloadLen(len(ip) - eth.IPv6Len)
	default:
		return false
	}
	if h.Parse(head); h.Protocol != eth.ProtocolTCP || h.Data != len(head) || h.Version == 6 && h.Options {
		return false
	}
	lengths(&h, head, len(body), uint16(number), head)
	tcp(head[h.Transport:], head[h.Transport:], offset, number == 0, last)
	sum(&h, head, body, tcpChecksum)
	return true
}

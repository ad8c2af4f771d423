package offload

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/wire/eth"
)

// Task is what a frame says beside its bytes as it passes between functions, ports and links: what they have left to each
// other (NDIS calls these task offloads). The zero value is that of a frame which is complete, and of which nothing is
// known.
type Task struct {
	// Segment is the payload of each segment, in bytes, of a frame that is larger than the wire's.
	Segment uint16
	// Kind is what such a frame is to be cut into; Whole for others.
	Kind Kind
	Sums Sums
}

// Task returns what a header of the system says about a packet. The error is a *formatError: the checksum is none of TCP or
// UDP, which Complete can make, or the packet is not what is to be cut.
func (h Header) Task(e *eth.Headers) (t Task, err error) {
	if h.Kind != Whole {
		if e.Data == 0 || !h.Kind.of(e.Protocol, e.Version) {
			return t, &formatError{"packet to cut", int(h.Kind), "a whole TCP or UDP packet of its kind"}
		}
		if h.Segment < 1 {
			return t, &formatError{"segment", h.Segment, "1 byte at least"}
		}
		t.Kind, t.Segment, t.Sums = h.Kind, uint16(h.Segment), MakeTransport
		return t, nil
	}
	if h.NeedsChecksum {
		if e.Data == 0 || h.ChecksumStart != e.Transport || h.ChecksumAt != checksumAt(e) {
			return t, &formatError{"checksum", h.ChecksumStart + h.ChecksumAt, "that of TCP or UDP"}
		}
		t.Sums = MakeTransport
	} else if h.ChecksumValid && e.Data != 0 {
		t.Sums = GoodTransport
	}
	return t, nil
}

// Header returns what a system needs to know about a packet with these headers.
func (t Task) Header(e *eth.Headers) (h Header) {
	if t.Kind != Whole {
		return Header{NeedsChecksum: true, Kind: t.Kind, Headers: e.Data, Segment: int(t.Segment), ChecksumStart: e.Transport,
			ChecksumAt: checksumAt(e)}
	}
	if t.Sums&MakeTransport != 0 {
		return Header{NeedsChecksum: true, ChecksumStart: e.Transport, ChecksumAt: checksumAt(e)}
	}
	return Header{ChecksumValid: t.Sums&GoodTransport != 0}
}

// HeaderOf returns the Header of a frame whose first bytes, with all headers up to that of the transport, are b. ok is false
// if they are not there, or not of TCP or UDP behind the IP header itself.
func (t Task) HeaderOf(b []byte) (h Header, ok bool) {
	var e eth.Headers
	if !e.Parse(b) {
		return h, false
	}
	switch p := b[e.Network:]; {
	case e.Type == eth.TypeIPv4 && len(p) >= eth.IPv4Len:
		e.Protocol, e.Transport = eth.IPv4(p).Protocol(), e.Network+eth.IPv4(p).HeaderLen()
	case e.Type == eth.TypeIPv6 && len(p) >= eth.IPv6Len:
		e.Protocol, e.Transport = eth.IPv6(p).NextHeader(), e.Network+eth.IPv6Len
	default:
		return h, false
	}
	switch {
	case e.Protocol == eth.ProtocolUDP:
		e.Data = e.Transport + eth.UDPLen
	case e.Protocol == eth.ProtocolTCP && len(b) >= e.Transport+eth.TCPLen:
		e.Data = e.Transport + int(b[e.Transport+tcpOffset]>>4)*4
	default:
		return h, false
	}
	return t.Header(&e), e.Data <= len(b)
}

// OnWire returns as how many frames, of how many bytes together, a frame of n bytes goes by a wire that takes none of several
// segments. Its first bytes, with all headers, are b.
func (t Task) OnWire(b []byte, n int) (frames, bytes int) {
	if t.Kind == Whole || t.Segment == 0 {
		return 1, n
	}
	h, ok := t.HeaderOf(b)
	if !ok || n <= h.Headers {
		return 1, n
	}
	full := (n - h.Headers - 1) / int(t.Segment) // all but the last
	last := n - full*int(t.Segment)
	return full + 1, full*max(h.Headers+int(t.Segment), minFrame) + max(last, minFrame)
}

// minFrame is the length to which shorter frames are filled up on a wire, without FCS (IEEE 802.3, 4.2.3.3).
const minFrame = 60

// enlarge makes a packet's headers those of a large one, of n bytes from the network header on: lengths, and checksums as
// far as a Task with MakeTransport has them.
func enlarge(e *eth.Headers, b []byte, n int) {
	p := b[e.Network:]
	if e.Version == 6 {
		eth.IPv6(p).SetPayloadLen(n - eth.IPv6Len)
	} else {
		eth.IPv4(p).SetTotalLen(n)
		eth.IPv4(p).SetChecksum()
	}
	binary.BigEndian.PutUint16(b[e.Transport+tcpChecksum:], fold(pseudo(p, e.Protocol, n-(e.Transport-e.Network))))
}

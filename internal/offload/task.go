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

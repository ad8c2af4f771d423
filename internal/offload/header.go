package offload

import (
	"encoding/binary"
	"fmt"
)

// HeaderLen is the length of a Header before a packet, and TunnelHeaderLen that of one that also says what is around a packet in a tunnel
// (struct virtio_net_hdr_v1_hash_tunnel).
const (
	HeaderLen       = 10
	TunnelHeaderLen = 24
)

// MaxPacket is the largest packet that a system passes or accepts, in bytes: the maximum of the IPv4
// length field.
const MaxPacket = 65535

// Kind says how a large packet is to be split.
type Kind uint8

// The kinds, as in the header's gso_type.
const (
	Whole Kind = 0 // not at all
	TCPv4 Kind = 1
	TCPv6 Kind = 4
	UDP   Kind = 5 // into datagrams of one size, over either IP version (VIRTIO 1.3, 5.1.6.4)
)

// Bits of the header's flags.
const (
	flagNeedsChecksum = 1
	flagChecksumValid = 2
	flagOuterSum      = 8 // the UDP checksum outside is to be made too
)

// flagECN is the bit of gso_type that says that the first segment alone has the flag CWR (RFC 3168 6.1.2), as Segments cuts
// every packet.
const flagECN = 0x80

// Header says what remains to be done for a packet passed between the system and its adapter: struct
// virtio_net_hdr (VIRTIO 1.1, 5.1.6), in little endian, as used by TUN interfaces with IFF_VNET_HDR on
// little-endian machines.
type Header struct {
	// NeedsChecksum: the checksum field contains only the sum of the pseudo header; the rest, from
	// ChecksumStart on, must be added.
	NeedsChecksum bool
	// ChecksumValid: the packet's checksum was found to be correct.
	ChecksumValid bool
	Kind          Kind
	Headers       int // of a packet to be split: bytes of its IP and TCP headers
	Segment       int // bytes of payload in each segment
	ChecksumStart int
	ChecksumAt    int // offset of the checksum from ChecksumStart
	// Of a packet in a tunnel: where the UDP header outside and the IP header inside begin, and whether UDP's checksum is to be made.
	Outer, Inner int
	OuterSum     bool
}

// formatError says that a field of a Header or of its packet cannot be.
type formatError struct {
	Field string
	Got   int
	Want  string // what is allowed
}

// Error implements error.
func (e *formatError) Error() string { return fmt.Sprintf("%s is %d, want %s", e.Field, e.Got, e.Want) }

// ParseHeader reads the header at the start of b, and returns what follows it. The error is a *formatError.
func ParseHeader(b []byte) (h Header, packet []byte, err error) {
	if len(b) < HeaderLen {
		return h, nil, &formatError{"virtio-net header", len(b), "10 bytes at least"}
	}
	h = parse(b)
	if !h.Kind.valid() {
		return h, nil, &formatError{"gso type", int(h.Kind), "0, 1, 4 or 5"}
	}
	return h, b[HeaderLen:], nil
}

// valid reports whether it is a kind of a packet in no tunnel.
func (k Kind) valid() bool { return k == Whole || k.TCP() || k == UDP }

// parse reads the fields that every header has.
func parse(b []byte) Header {
	return Header{
		NeedsChecksum: b[0]&flagNeedsChecksum != 0, ChecksumValid: b[0]&flagChecksumValid != 0, Kind: Kind(b[1] &^ flagECN),
		Headers: int(binary.LittleEndian.Uint16(b[2:])), Segment: int(binary.LittleEndian.Uint16(b[4:])),
		ChecksumStart: int(binary.LittleEndian.Uint16(b[6:])), ChecksumAt: int(binary.LittleEndian.Uint16(b[8:])),
	}
}

// Put writes the header to the start of b.
func (h Header) Put(b []byte) {
	_ = b[HeaderLen-1]
	b[0], b[1] = 0, byte(h.Kind)
	if h.NeedsChecksum {
		b[0] |= flagNeedsChecksum
	}
	if h.ChecksumValid {
		b[0] |= flagChecksumValid
	}
	for n, v := range [...]int{h.Headers, h.Segment, h.ChecksumStart, h.ChecksumAt} {
		binary.LittleEndian.PutUint16(b[2+2*n:], uint16(v))
	}
}

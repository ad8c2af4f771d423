package encap

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// flow holds the fields of the outer headers that the ICRC covers and that the packets of a connection
// share.
type flow struct {
	src, dst         netip.Addr
	srcPort, dstPort uint16
}

// is reports whether f has these fields. They are compared one by one: to make a flow of them and compare that as a whole
// would have to wait for the stores of its fields.
func (f *flow) is(src, dst *netip.Addr, srcPort, dstPort uint16) bool {
	return f.srcPort == srcPort && f.dstPort == dstPort && f.src == *src && f.dst == *dst
}

// The packets of a stream differ in the last word of the BTH, in the IPv4 identification, and in what
// follows the BTH. The ICRC of everything before that word is cached for identification 0; another
// identification adds a difference that is the same for all (package ib, SolveID).
const (
	streamsKept  = 32 // a power of two
	streamShift  = 64 - 5
	streamHead   = 8  // bytes of the BTH that are equal
	segmentsKept = 64 // identifications whose difference is cached
)

// stream identifies packets of a flow with equal length and equal first eight bytes of the BTH, which
// include opcode, pad count and destination QP.
type stream struct {
	flow   flow
	length int
	head   uint64
	crc    uint32
	known  bool // crc is computed when the second packet comes: many streams have only one
	// admitted means that received packets of the flow are addressed to this port; they need not be checked again.
	admitted bool
}

// begin begins the ICRC of a packet of a flow, length bytes from the BTH to the ICRC. head begins with the
// BTH, and rest follows it. It includes at least the BTH; n is how much of both.
func (e *Encap) begin(f *flow, length int, id uint16, head, rest []byte) (crc uint32, n int) {
	s := e.stream(f, length, common(head))
	if s == nil || !s.numbers(id) {
		return e.seed(e.outer(f), length, id, head, rest)
	}
	return s.begin(id, head), ib.BTHLen
}

// common returns the bytes of the BTH, at the front of head, that the packets of a stream share, with the
// byte masked that the ICRC masks.
func common(head []byte) uint64 { return binary.LittleEndian.Uint64(head) | 0xff<<(8*bthECN) }

// stream returns the stream of a packet, or nil for the first packet, which starts it.
func (e *Encap) stream(f *flow, length int, first uint64) *stream {
	s := e.place(length, first)
	if s.head != first || s.length != length || s.flow != *f {
		*s = stream{flow: *f, length: length, head: first}
		return nil
	}
	if !s.known {
		var head [streamHead]byte
		binary.LittleEndian.PutUint64(head[:], first)
		s.crc, _ = e.seed(e.outer(f), length, 0, head[:], nil)
		s.known = true
	}
	return s
}

// place returns the slot for a stream, which may contain another one.
func (e *Encap) place(length int, first uint64) *stream {
	return &e.streams[(first^uint64(length))*0x9e3779b97f4a7c15>>streamShift]
}

// known returns the stream of a packet if the beginning of its ICRC is known for this identification, otherwise nil.
func (e *Encap) known(src, dst *netip.Addr, srcPort, dstPort uint16, length int, id uint16, first uint64) *stream {
	s := e.place(length, first)
	if !s.known || s.head != first || s.length != length || !s.flow.is(src, dst, srcPort, dstPort) || !s.numbers(id) {
		return nil
	}
	return s
}

// numbers reports whether the difference for an identification is known.
func (s *stream) numbers(id uint16) bool { return id < segmentsKept || !s.flow.dst.Is4() }

// begin begins the ICRC of a packet of the stream, including its BTH.
func (s *stream) begin(id uint16, head []byte) uint32 {
	crc := s.crc
	if s.flow.dst.Is4() {
		crc ^= idDifference[id]
	}
	return ib.ICRCWord(crc, head[streamHead:])
}

// idDifference is what an identification adds to the ICRC of an IPv4 packet up to the first streamHead
// bytes of its BTH.
var idDifference = func() (t [segmentsKept]uint32) {
	var b [2 + eth.IPv4Len - 6 + eth.UDPLen + streamHead]byte
	none := ib.ICRCUpdate(0, b[:])
	for id := range t {
		binary.BigEndian.PutUint16(b[:], uint16(id))
		t[id] = ib.ICRCUpdate(0, b[:]) ^ none
	}
	return t
}()

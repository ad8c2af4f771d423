package encap

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// flow is what the outer headers of a packet say, as far as the ICRC covers it and the
// packets of a connection have it in common.
type flow struct {
	src, dst         netip.Addr
	srcPort, dstPort uint16
}

// The packets of a stream differ in the last word of the BTH, in the IPv4 identification, and in
// what follows the BTH. What the ICRC makes of all before that word is remembered, with
// identification 0; that of another one is a difference which is the same for all (package
// ib, SolveID).
const (
	streamsKept  = 32 // a power of two
	streamShift  = 64 - 5
	streamHead   = 8  // bytes of the BTH that are the same
	segmentsKept = 64 // identifications whose difference is remembered
)

// stream is packets of a flow that have the length and the first eight bytes of the BTH in common,
// among them opcode, pad count and destination QP.
type stream struct {
	flow   flow
	length int
	head   uint64
	crc    uint32
	known  bool // crc is made when the second packet comes: many streams have one only
}

// begin begins the ICRC of a packet of a flow, length bytes from the BTH to the ICRC. head
// begins with the BTH, and rest follows it. It takes at least the BTH; n is how much
// of both.
func (e *Encap) begin(f *flow, length int, id uint16, head, rest []byte) (crc uint32, n int) {
	s := e.stream(f, length, common(head))
	if s == nil || !s.numbers(id) {
		return e.seed(e.outer(f), length, id, head, rest)
	}
	return s.begin(id, head), ib.BTHLen
}

// common is what the packets of a stream have in common of the BTH at the front of head, with the byte masked that the ICRC leaves out.
func common(head []byte) uint64 { return binary.LittleEndian.Uint64(head) | 0xff<<(8*bthECN) }

// stream returns the stream of a packet, nil for the first one, which begins it.
func (e *Encap) stream(f *flow, length int, first uint64) *stream {
	s := &e.streams[(first^uint64(length))*0x9e3779b97f4a7c15>>streamShift]
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

// numbers reports whether the stream knows what an identification adds.
func (s *stream) numbers(id uint16) bool { return id < segmentsKept || !s.flow.dst.Is4() }

// begin begins the ICRC of a packet of the stream, over its BTH.
func (s *stream) begin(id uint16, head []byte) uint32 {
	crc := s.crc
	if s.flow.dst.Is4() {
		crc ^= idDifference[id]
	}
	return ib.ICRCWord(crc, head[streamHead:])
}

// idDifference is what an identification adds to the ICRC of an IPv4 packet up to streamHead
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

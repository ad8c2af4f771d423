package cable

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The datagrams of a cable over UDP. Those that set up a session are in greet.go; those of a session begin
// with a header:
//
//	0  kind
//	1  flags
//	2  where in the payload the first frame begins; noFrame: none begins in it
//	4  number of the last message received
//	8  the session, as the receiver identifies it
//	16 where in the sender's stream the payload is
//	24 up to where the sender accepts the other direction's stream
//
// all little-endian. The frames of a direction form a stream of bytes that is cut into datagrams of one
// size: short frames share a datagram, a long one spans several. Each frame consists of its length in two
// bytes, the packet from its LRH to its ICRC, and its variant CRC. Both counters are absolute, like those
// of IBA 7.9.4, so that a lost datagram takes its frames with it but no credit. A lost frame is never
// retransmitted: it counts as a bit error of the link.
const (
	headerLen = 32

	kindGreet     = 10 // of the adapter, until it is answered
	kindChallenge = 11 // of the fabric: greet again, with this
	kindAdmit     = 12 // of the fabric: admitted to a session
	kindDeny      = 13 // of the fabric: a code and a text
	kindGone      = 14 // the session does not exist
	kindFrames    = 20 // a header, then payload, possibly none
	kindMessage   = 21 // a header without payload, then the message's number and the message
	kindBye       = 22 // a header: the session has ended

	flagAnswer = 1 // an answer is wanted at once
	noFrame    = math.MaxUint16

	// MaxDatagram and minDatagram limit the datagrams of a session, without IP and UDP headers. The
	// minimum is what IPv4 always carries (RFC 791).
	MaxDatagram = 16 << 10
	minDatagram = 548

	recordMore = 4 // bytes of the stream per frame, besides the frame itself
	maxRecord  = MaxFrame + recordMore
)

// header is the header of a datagram of a session.
type header struct {
	kind, flags     uint8
	first           uint16
	heard           uint32
	session         uint64
	position, limit uint64
}

func (h *header) put(b []byte) {
	_ = b[headerLen-1]
	b[0], b[1] = h.kind, h.flags
	binary.LittleEndian.PutUint16(b[2:], h.first)
	binary.LittleEndian.PutUint32(b[4:], h.heard)
	binary.LittleEndian.PutUint64(b[8:], h.session)
	binary.LittleEndian.PutUint64(b[16:], h.position)
	binary.LittleEndian.PutUint64(b[24:], h.limit)
}

// Session returns the session that a datagram belongs to, as its receiver identifies it, or false if it
// belongs to none.
func Session(b []byte) (uint64, bool) {
	if len(b) < headerLen || b[0] < kindFrames || b[0] > kindBye {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[8:]), true
}

// parseHeader reads a datagram of a session. The error is a *messageError.
func parseHeader(b []byte) (h header, payload []byte, err error) {
	if _, ok := Session(b); !ok {
		return h, nil, &messageError{fmt.Sprintf("a datagram of %d bytes belongs to no session", len(b))}
	}
	h = header{
		kind: b[0], flags: b[1], first: binary.LittleEndian.Uint16(b[2:]), heard: binary.LittleEndian.Uint32(b[4:]),
		session: binary.LittleEndian.Uint64(b[8:]), position: binary.LittleEndian.Uint64(b[16:]), limit: binary.LittleEndian.Uint64(b[24:]),
	}
	payload = b[headerLen:]
	if h.first != noFrame && int(h.first) >= len(payload) {
		return h, nil, &messageError{fmt.Sprintf("the first frame begins at %d of %d bytes", h.first, len(payload))}
	}
	return h, payload, nil
}

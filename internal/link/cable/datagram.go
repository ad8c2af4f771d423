package cable

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Datagrams of a cable over UDP. What precedes a session is in greet.go; those of a session begin with a header:
//
//	0  kind
//	1  flags
//	2  where in the payload the first frame begins; noFrame: none does
//	4  number of the last message that has come
//	8  the session, as whoever receives it has named it
//	16 where in the sender's stream the payload stands
//	24 up to where in the other direction the sender takes payload
//
// all little-endian. The frames of a direction are a stream of bytes, cut into datagrams of one size: a short frame shares its datagram
// with others, a long one has several. Each frame is its length in two bytes, the packet from its LRH to its ICRC, and its
// variant CRC. Both counters are absolute, as those of IBA 7.9.4 are, so that a datagram that is lost takes its frames with it and no
// credit. A lost frame is never sent again: it is a bit error of the link.
const (
	headerLen = 32

	kindGreet     = 10 // of the adapter, until it is answered
	kindChallenge = 11 // of the fabric: greet again, with this
	kindAdmit     = 12 // of the fabric: a session
	kindDeny      = 13 // of the fabric: a code and a text
	kindGone      = 14 // there is no such session
	kindFrames    = 20 // a header, then payload, or none
	kindMessage   = 21 // a header without payload, then the message's number and the message
	kindBye       = 22 // a header: the session has ended

	flagAnswer = 1 // an answer is wanted now
	noFrame    = math.MaxUint16

	// MaxDatagram and minDatagram bound the datagrams of a session, without IP and UDP headers: the least is what IPv4 always
	// carries (RFC 791).
	MaxDatagram = 16 << 10
	minDatagram = 548

	recordMore = 4 // bytes of a frame in the stream beside itself
	maxRecord  = MaxFrame + recordMore
)

// header is the beginning of a datagram of a session.
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

// Session is the session that a datagram belongs to, by the name that whoever receives it has given; false: it belongs to none.
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

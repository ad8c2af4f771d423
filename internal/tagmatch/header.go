package tagmatch

import "encoding/binary"

// Lengths of the headers in bytes.
const (
	HeaderLen     = 16
	RendezvousLen = 16
	// MaxRequest is the most that a rendezvous request may have, headers and further data: it fits into one packet at any MTU.
	MaxRequest = 256
)

// Op is what a message is.
type Op uint8

// The operations, numbered as on the wire (enum ibv_tmh_op).
const (
	NoTag      Op = iota // for nobody in particular, and whatever has no header
	Rendezvous           // asks the receiver to read the data
	Fin                  // tells that the data of a rendezvous was read
	Eager                // has the data
)

// Header is a view of a tag matching header (struct ibv_tmh), HeaderLen bytes.
type Header []byte

// Op is the operation.
func (h Header) Op() Op { return Op(h[0]) }

// App is the program's own data.
func (h Header) App() uint32 { return binary.BigEndian.Uint32(h[4:]) }

// Tag is the tag.
func (h Header) Tag() uint64 { return binary.BigEndian.Uint64(h[8:]) }

// Encode sets every field.
func (h Header) Encode(op Op, app uint32, tag uint64) {
	h[0], h[1], h[2], h[3] = uint8(op), 0, 0, 0
	binary.BigEndian.PutUint32(h[4:], app)
	binary.BigEndian.PutUint64(h[8:], tag)
}

// Where is a view of a rendezvous header (struct ibv_rvh), RendezvousLen bytes behind the Header: where the data is.
type Where []byte

// Addr is the address at the sender.
func (w Where) Addr() uint64 { return binary.BigEndian.Uint64(w) }

// RKey is the key that allows to read it.
func (w Where) RKey() uint32 { return binary.BigEndian.Uint32(w[8:]) }

// Length is the number of bytes.
func (w Where) Length() uint32 { return binary.BigEndian.Uint32(w[12:]) }

// Encode sets every field.
func (w Where) Encode(addr uint64, rkey, length uint32) {
	binary.BigEndian.PutUint64(w, addr)
	binary.BigEndian.PutUint32(w[8:], rkey)
	binary.BigEndian.PutUint32(w[12:], length)
}

// Parse says what a message is that begins with b, and returns its headers. whole says that b is all of it. What has not the
// form of its operation is NoTag, and left to the program.
func Parse(b []byte, whole bool) (op Op, h Header, w Where) {
	if len(b) < HeaderLen {
		return NoTag, nil, nil
	}
	h = Header(b[:HeaderLen:HeaderLen])
	switch h.Op() {
	case Eager, Fin:
		return h.Op(), h, nil
	case Rendezvous:
		if whole && len(b) >= HeaderLen+RendezvousLen && len(b) <= MaxRequest {
			return Rendezvous, h, Where(b[HeaderLen : HeaderLen+RendezvousLen])
		}
	}
	return NoTag, nil, nil
}

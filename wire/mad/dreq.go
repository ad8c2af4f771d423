package mad

import "github.com/softvpi/softvpi/wire/ib"

// DREQPrivateData is the length of a DREQ's private data.
const DREQPrivateData = 220

const (
	dreqLocalCommID  = 24
	dreqRemoteCommID = 28
	dreqRemoteQPN    = 32
	dreqPrivate      = 36
)

// DREQ is the request for communication release (IBA 12.6.10).
type DREQ struct {
	TransactionID             uint64
	LocalCommID, RemoteCommID uint32
	RemoteQPN                 ib.QPN // the receiver's, or for RD its EEC number
	PrivateData               [DREQPrivateData]byte
}

// Attribute implements Message.
func (*DREQ) Attribute() uint16 { return AttrDREQ }

// Transaction implements Message.
func (m *DREQ) Transaction() uint64 { return m.TransactionID }

// Append implements Message.
func (m *DREQ) Append(b []byte) []byte {
	b, p := start(b, AttrDREQ, m.TransactionID)
	put32(p[dreqLocalCommID:], m.LocalCommID)
	put32(p[dreqRemoteCommID:], m.RemoteCommID)
	put24(p[dreqRemoteQPN:], uint32(m.RemoteQPN))
	copy(p[dreqPrivate:], m.PrivateData[:])
	return b
}

// ParseDREQ reads a DREQ. The error is an *Error.
func ParseDREQ(b []byte) (DREQ, error) {
	tid, err := open(b, AttrDREQ)
	if err != nil {
		return DREQ{}, err
	}
	return DREQ{
		TransactionID: tid,
		LocalCommID:   get32(b[dreqLocalCommID:]),
		RemoteCommID:  get32(b[dreqRemoteCommID:]),
		RemoteQPN:     getQPN(b[dreqRemoteQPN:]),
		PrivateData:   [DREQPrivateData]byte(b[dreqPrivate:]),
	}, nil
}

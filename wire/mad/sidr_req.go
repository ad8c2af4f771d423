package mad

import "github.com/softvpi/softvpi/wire/ib"

// SIDRREQPrivateData is the length of a SIDR_REQ's private data. With RDMA IP addressing the
// first IPHeaderLen bytes are the IPHeader and SIDRREQConsumerData is left.
const (
	SIDRREQPrivateData  = 216
	SIDRREQConsumerData = SIDRREQPrivateData - IPHeaderLen
)

const (
	sidrReqRequestID = 24
	sidrReqPKey      = 28
	sidrReqServiceID = 32
	sidrReqPrivate   = 40
)

// SIDRREQ is the service ID resolution request (IBA 12.11.1): it asks which datagram queue pair serves a
// service ID.
type SIDRREQ struct {
	TransactionID uint64
	RequestID     uint32
	PKey          ib.PKey
	ServiceID     uint64
	PrivateData   [SIDRREQPrivateData]byte
}

// Attribute implements Message.
func (*SIDRREQ) Attribute() uint16 { return AttrSIDRREQ }

// Transaction implements Message.
func (m *SIDRREQ) Transaction() uint64 { return m.TransactionID }

// Append implements Message.
func (m *SIDRREQ) Append(b []byte) []byte {
	b, p := start(b, AttrSIDRREQ, m.TransactionID)
	put32(p[sidrReqRequestID:], m.RequestID)
	put16(p[sidrReqPKey:], uint16(m.PKey))
	put64(p[sidrReqServiceID:], m.ServiceID)
	copy(p[sidrReqPrivate:], m.PrivateData[:])
	return b
}

// ParseSIDRREQ reads a SIDR_REQ. The error is an *Error.
func ParseSIDRREQ(b []byte) (SIDRREQ, error) {
	tid, err := open(b, AttrSIDRREQ)
	if err != nil {
		return SIDRREQ{}, err
	}
	return SIDRREQ{
		TransactionID: tid,
		RequestID:     get32(b[sidrReqRequestID:]),
		PKey:          ib.PKey(get16(b[sidrReqPKey:])),
		ServiceID:     get64(b[sidrReqServiceID:]),
		PrivateData:   [SIDRREQPrivateData]byte(b[sidrReqPrivate:]),
	}, nil
}

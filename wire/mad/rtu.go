package mad

// RTUPrivateData is the length of an RTU's private data.
const RTUPrivateData = 224

const (
	rtuLocalCommID  = 24
	rtuRemoteCommID = 28
	rtuPrivate      = 32
)

// RTU is the ready to use message (IBA 12.6.9): the requester has accepted the REP.
type RTU struct {
	TransactionID             uint64
	LocalCommID, RemoteCommID uint32
	PrivateData               [RTUPrivateData]byte
}

// Attribute implements Message.
func (*RTU) Attribute() uint16 { return AttrRTU }

// Transaction implements Message.
func (m *RTU) Transaction() uint64 { return m.TransactionID }

// Append implements Message.
func (m *RTU) Append(b []byte) []byte {
	b, p := start(b, AttrRTU, m.TransactionID)
	put32(p[rtuLocalCommID:], m.LocalCommID)
	put32(p[rtuRemoteCommID:], m.RemoteCommID)
	copy(p[rtuPrivate:], m.PrivateData[:])
	return b
}

// ParseRTU reads an RTU. The error is an *Error.
func ParseRTU(b []byte) (RTU, error) {
	tid, err := open(b, AttrRTU)
	if err != nil {
		return RTU{}, err
	}
	return RTU{
		TransactionID: tid,
		LocalCommID:   get32(b[rtuLocalCommID:]),
		RemoteCommID:  get32(b[rtuRemoteCommID:]),
		PrivateData:   [RTUPrivateData]byte(b[rtuPrivate:]),
	}, nil
}

package mad

// DREPPrivateData is the length of a DREP's private data.
const DREPPrivateData = 224

const (
	drepLocalCommID  = 24
	drepRemoteCommID = 28
	drepPrivate      = 32
)

// DREP is the reply to a DREQ (IBA 12.6.11).
type DREP struct {
	TransactionID             uint64
	LocalCommID, RemoteCommID uint32
	PrivateData               [DREPPrivateData]byte
}

// Attribute implements Message.
func (*DREP) Attribute() uint16 { return AttrDREP }

// Transaction implements Message.
func (m *DREP) Transaction() uint64 { return m.TransactionID }

// Append implements Message.
func (m *DREP) Append(b []byte) []byte {
	b, p := start(b, AttrDREP, m.TransactionID)
	put32(p[drepLocalCommID:], m.LocalCommID)
	put32(p[drepRemoteCommID:], m.RemoteCommID)
	copy(p[drepPrivate:], m.PrivateData[:])
	return b
}

// ParseDREP reads a DREP. The error is an *Error.
func ParseDREP(b []byte) (DREP, error) {
	tid, err := open(b, AttrDREP)
	if err != nil {
		return DREP{}, err
	}
	return DREP{
		TransactionID: tid,
		LocalCommID:   get32(b[drepLocalCommID:]),
		RemoteCommID:  get32(b[drepRemoteCommID:]),
		PrivateData:   [DREPPrivateData]byte(b[drepPrivate:]),
	}, nil
}

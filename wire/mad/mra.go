package mad

// MRAPrivateData is the length of an MRA's private data.
const MRAPrivateData = 222

// Values of MRA.Message: which message is being worked on.
const (
	MRAForREQ = 0
	MRAForREP = 1
	MRAForLAP = 2
)

const (
	mraLocalCommID  = 24
	mraRemoteCommID = 28
	mraMessage      = 32
	mraTimeout      = 33
	mraPrivate      = 34
)

// MRA is the message receipt acknowledgement (IBA 12.6.6): an answer will take longer than
// the peer would wait.
type MRA struct {
	TransactionID             uint64
	LocalCommID, RemoteCommID uint32
	Message                   uint8 // 2 bits: MRAForREQ, MRAForREP or MRAForLAP
	ServiceTimeout            uint8 // 5 bits: see ib.CMTimeout
	PrivateData               [MRAPrivateData]byte
}

// Attribute implements Message.
func (*MRA) Attribute() uint16 { return AttrMRA }

// Transaction implements Message.
func (m *MRA) Transaction() uint64 { return m.TransactionID }

// Append implements Message.
func (m *MRA) Append(b []byte) []byte {
	b, p := start(b, AttrMRA, m.TransactionID)
	put32(p[mraLocalCommID:], m.LocalCommID)
	put32(p[mraRemoteCommID:], m.RemoteCommID)
	p[mraMessage] = m.Message << 6
	p[mraTimeout] = m.ServiceTimeout << 3
	copy(p[mraPrivate:], m.PrivateData[:])
	return b
}

// ParseMRA reads an MRA. The error is an *Error.
func ParseMRA(b []byte) (MRA, error) {
	tid, err := open(b, AttrMRA)
	if err != nil {
		return MRA{}, err
	}
	return MRA{
		TransactionID:  tid,
		LocalCommID:    get32(b[mraLocalCommID:]),
		RemoteCommID:   get32(b[mraRemoteCommID:]),
		Message:        b[mraMessage] >> 6,
		ServiceTimeout: b[mraTimeout] >> 3,
		PrivateData:    [MRAPrivateData]byte(b[mraPrivate:]),
	}, nil
}

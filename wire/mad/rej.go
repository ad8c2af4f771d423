package mad

// Lengths of the variable parts of a REJ.
const (
	REJPrivateData = 148
	REJInfoLen     = 72
)

// Values of REJ.Message: which message is rejected.
const (
	REJOfREQ   = 0
	REJOfREP   = 1
	REJOfOther = 2 // none in particular: timeouts and unexpected messages
)

const (
	rejLocalCommID  = 24
	rejRemoteCommID = 28
	rejMessage      = 32
	rejInfoLength   = 33
	rejReason       = 34
	rejInfo         = 36
	rejPrivate      = 108
)

// REJ is the reject (IBA 12.6.7).
type REJ struct {
	TransactionID             uint64
	LocalCommID, RemoteCommID uint32
	Message                   uint8 // 2 bits: REJOfREQ, REJOfREP or REJOfOther
	InfoLength                uint8 // 7 bits: bytes of Info in use, at most REJInfoLen
	Reason                    RejectReason
	Info                      [REJInfoLen]byte // additional reject information, by reason (IBA table "REJ Reasons")
	PrivateData               [REJPrivateData]byte
}

// Attribute implements Message.
func (*REJ) Attribute() uint16 { return AttrREJ }

// Transaction implements Message.
func (m *REJ) Transaction() uint64 { return m.TransactionID }

// Append implements Message.
func (m *REJ) Append(b []byte) []byte {
	b, p := start(b, AttrREJ, m.TransactionID)
	put32(p[rejLocalCommID:], m.LocalCommID)
	put32(p[rejRemoteCommID:], m.RemoteCommID)
	p[rejMessage] = m.Message << 6
	p[rejInfoLength] = m.InfoLength << 1
	put16(p[rejReason:], uint16(m.Reason))
	copy(p[rejInfo:], m.Info[:])
	copy(p[rejPrivate:], m.PrivateData[:])
	return b
}

// ParseREJ reads a REJ. The error is an *Error.
func ParseREJ(b []byte) (REJ, error) {
	tid, err := open(b, AttrREJ)
	if err != nil {
		return REJ{}, err
	}
	m := REJ{
		TransactionID: tid,
		LocalCommID:   get32(b[rejLocalCommID:]),
		RemoteCommID:  get32(b[rejRemoteCommID:]),
		Message:       b[rejMessage] >> 6,
		InfoLength:    b[rejInfoLength] >> 1,
		Reason:        RejectReason(get16(b[rejReason:])),
		Info:          [REJInfoLen]byte(b[rejInfo:]),
		PrivateData:   [REJPrivateData]byte(b[rejPrivate:]),
	}
	if m.InfoLength > REJInfoLen {
		return REJ{}, &Error{"reject info length", uint64(m.InfoLength), "at most 72"}
	}
	return m, nil
}

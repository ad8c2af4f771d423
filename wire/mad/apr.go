package mad

import "fmt"

// Lengths of the variable parts of an APR.
const (
	APRPrivateData = 148
	APRInfoLen     = 72
)

const (
	aprLocalCommID  = 24
	aprRemoteCommID = 28
	aprInfoLength   = 32
	aprStatus       = 33
	aprInfo         = 36
	aprPrivate      = 108
)

// APRStatus says how the loading of an alternate path ended (IBA 12.8.2.1).
type APRStatus uint8

// The alternate path statuses.
const (
	APRLoaded            APRStatus = 0
	APRInvalidCommID     APRStatus = 1
	APRUnsupported       APRStatus = 2
	APRRejected          APRStatus = 3
	APRRedirect          APRStatus = 4
	APRDuplicatePath     APRStatus = 5
	APRInvalidQPN        APRStatus = 6
	APRInvalidLID        APRStatus = 7
	APRInvalidGID        APRStatus = 8
	APRInvalidFlowLabel  APRStatus = 9
	APRInvalidTClass     APRStatus = 10
	APRInvalidHopLimit   APRStatus = 11
	APRInvalidPacketRate APRStatus = 12
	APRInvalidSL         APRStatus = 13
)

// String returns the status in words.
func (s APRStatus) String() string {
	names := [...]string{
		"alternate path loaded", "invalid communication ID", "alternate paths not supported", "rejected", "redirected",
		"path is the current one", "QPN mismatch", "LID rejected", "GID rejected", "flow label rejected", "traffic class rejected",
		"hop limit rejected", "packet rate rejected", "SL rejected",
	}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("APR status %d", uint8(s))
}

// APR is the alternate path response (IBA 12.8.2).
type APR struct {
	TransactionID             uint64
	LocalCommID, RemoteCommID uint32
	InfoLength                uint8 // bytes of Info in use, at most APRInfoLen
	Status                    APRStatus
	Info                      [APRInfoLen]byte
	PrivateData               [APRPrivateData]byte
}

// Attribute implements Message.
func (*APR) Attribute() uint16 { return AttrAPR }

// Transaction implements Message.
func (m *APR) Transaction() uint64 { return m.TransactionID }

// Append implements Message.
func (m *APR) Append(b []byte) []byte {
	b, p := start(b, AttrAPR, m.TransactionID)
	put32(p[aprLocalCommID:], m.LocalCommID)
	put32(p[aprRemoteCommID:], m.RemoteCommID)
	p[aprInfoLength] = m.InfoLength
	p[aprStatus] = byte(m.Status)
	copy(p[aprInfo:], m.Info[:])
	copy(p[aprPrivate:], m.PrivateData[:])
	return b
}

// ParseAPR reads an APR. The error is an *Error.
func ParseAPR(b []byte) (APR, error) {
	tid, err := open(b, AttrAPR)
	if err != nil {
		return APR{}, err
	}
	m := APR{
		TransactionID: tid,
		LocalCommID:   get32(b[aprLocalCommID:]),
		RemoteCommID:  get32(b[aprRemoteCommID:]),
		InfoLength:    b[aprInfoLength],
		Status:        APRStatus(b[aprStatus]),
		Info:          [APRInfoLen]byte(b[aprInfo:]),
		PrivateData:   [APRPrivateData]byte(b[aprPrivate:]),
	}
	if m.InfoLength > APRInfoLen {
		return APR{}, &Error{"additional info length", uint64(m.InfoLength), "at most 72"}
	}
	return m, nil
}

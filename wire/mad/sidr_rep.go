package mad

import (
	"fmt"

	"github.com/softvpi/softvpi/wire/ib"
)

// Lengths of the variable parts of a SIDR_REP.
const (
	SIDRREPPrivateData = 136
	SIDRREPInfoLen     = 72
)

const (
	sidrRepRequestID  = 24
	sidrRepStatus     = 28
	sidrRepInfoLength = 29
	sidrRepQPN        = 32
	sidrRepServiceID  = 36
	sidrRepQKey       = 44
	sidrRepInfo       = 48
	sidrRepPrivate    = 120
)

// SIDRStatus says how a service ID resolution ended (IBA 12.11.2.1).
type SIDRStatus uint8

// The SIDR statuses.
const (
	SIDRValid              SIDRStatus = 0 // QPN and Q_Key are valid
	SIDRUnsupportedService SIDRStatus = 1
	SIDRRejected           SIDRStatus = 2
	SIDRNoQP               SIDRStatus = 3
	SIDRRedirected         SIDRStatus = 4 // Info holds a ClassPortInfo
	SIDRUnsupportedVersion SIDRStatus = 5
)

// String returns the status in words.
func (s SIDRStatus) String() string {
	names := [...]string{"QPN valid", "service ID not supported", "rejected by service provider", "no QP available", "redirected",
		"unsupported version"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("SIDR status %d", uint8(s))
}

// SIDRREP is the service ID resolution response (IBA 12.11.2).
type SIDRREP struct {
	TransactionID uint64
	RequestID     uint32
	Status        SIDRStatus
	InfoLength    uint8 // bytes of Info in use, at most SIDRREPInfoLen
	QPN           ib.QPN
	ServiceID     uint64
	QKey          uint32
	Info          [SIDRREPInfoLen]byte
	PrivateData   [SIDRREPPrivateData]byte
}

// Attribute implements Message.
func (*SIDRREP) Attribute() uint16 { return AttrSIDRREP }

// Transaction implements Message.
func (m *SIDRREP) Transaction() uint64 { return m.TransactionID }

// Append implements Message.
func (m *SIDRREP) Append(b []byte) []byte {
	b, p := start(b, AttrSIDRREP, m.TransactionID)
	put32(p[sidrRepRequestID:], m.RequestID)
	p[sidrRepStatus] = byte(m.Status)
	p[sidrRepInfoLength] = m.InfoLength
	put24(p[sidrRepQPN:], uint32(m.QPN))
	put64(p[sidrRepServiceID:], m.ServiceID)
	put32(p[sidrRepQKey:], m.QKey)
	copy(p[sidrRepInfo:], m.Info[:])
	copy(p[sidrRepPrivate:], m.PrivateData[:])
	return b
}

// ParseSIDRREP reads a SIDR_REP. The error is an *Error.
func ParseSIDRREP(b []byte) (SIDRREP, error) {
	tid, err := open(b, AttrSIDRREP)
	if err != nil {
		return SIDRREP{}, err
	}
	m := SIDRREP{
		TransactionID: tid,
		RequestID:     get32(b[sidrRepRequestID:]),
		Status:        SIDRStatus(b[sidrRepStatus]),
		InfoLength:    b[sidrRepInfoLength],
		QPN:           getQPN(b[sidrRepQPN:]),
		ServiceID:     get64(b[sidrRepServiceID:]),
		QKey:          get32(b[sidrRepQKey:]),
		Info:          [SIDRREPInfoLen]byte(b[sidrRepInfo:]),
		PrivateData:   [SIDRREPPrivateData]byte(b[sidrRepPrivate:]),
	}
	if m.InfoLength > SIDRREPInfoLen {
		return SIDRREP{}, &Error{"SIDR additional info length", uint64(m.InfoLength), "at most 72"}
	}
	return m, nil
}

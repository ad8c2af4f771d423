package mad

import "github.com/softvpi/softvpi/wire/ib"

// REPPrivateData is the length of a REP's private data.
const REPPrivateData = 196

const (
	repLocalCommID  = 24
	repRemoteCommID = 28
	repLocalQKey    = 32
	repLocalQPN     = 36
	repLocalEECN    = 40
	repStartingPSN  = 44
	repResources    = 48
	repDepth        = 49
	repAckDelay     = 50 // target ACK delay, failover accepted, flow control
	repRNR          = 51 // RNR retry count, SRQ
	repLocalCAGUID  = 52
	repPrivate      = 60
)

// Values of REP.Failover (IBA 12.7.40): the responder's answer to the alternate path.
const (
	FailoverAccepted    = 0
	FailoverUnsupported = 1
	FailoverRejected    = 2
)

// REP is the reply to a request for communication (IBA 12.6.8).
type REP struct {
	TransactionID             uint64
	LocalCommID, RemoteCommID uint32
	LocalQKey                 uint32
	LocalQPN                  ib.QPN
	LocalEECN                 uint32
	StartingPSN               ib.PSN // the first PSN that the receiver is to use towards the sender
	ResponderResources        uint8
	InitiatorDepth            uint8
	TargetAckDelay            uint8 // 5 bits: see ib.CMTimeout
	Failover                  uint8 // 2 bits
	FlowControl               bool
	RNRRetryCount             uint8 // 3 bits
	SRQ                       bool
	LocalCAGUID               uint64
	PrivateData               [REPPrivateData]byte
}

// Attribute implements Message.
func (*REP) Attribute() uint16 { return AttrREP }

// Transaction implements Message.
func (m *REP) Transaction() uint64 { return m.TransactionID }

// Append implements Message.
func (m *REP) Append(b []byte) []byte {
	b, p := start(b, AttrREP, m.TransactionID)
	put32(p[repLocalCommID:], m.LocalCommID)
	put32(p[repRemoteCommID:], m.RemoteCommID)
	put32(p[repLocalQKey:], m.LocalQKey)
	put24(p[repLocalQPN:], uint32(m.LocalQPN))
	put24(p[repLocalEECN:], m.LocalEECN)
	put24(p[repStartingPSN:], uint32(m.StartingPSN))
	p[repResources] = m.ResponderResources
	p[repDepth] = m.InitiatorDepth
	p[repAckDelay] = m.TargetAckDelay<<3 | m.Failover&3<<1 | flag(m.FlowControl, 0x01)
	p[repRNR] = m.RNRRetryCount<<5 | flag(m.SRQ, 0x10)
	put64(p[repLocalCAGUID:], m.LocalCAGUID)
	copy(p[repPrivate:], m.PrivateData[:])
	return b
}

// ParseREP reads a REP. The error is an *Error.
func ParseREP(b []byte) (REP, error) {
	tid, err := open(b, AttrREP)
	if err != nil {
		return REP{}, err
	}
	return REP{
		TransactionID:      tid,
		LocalCommID:        get32(b[repLocalCommID:]),
		RemoteCommID:       get32(b[repRemoteCommID:]),
		LocalQKey:          get32(b[repLocalQKey:]),
		LocalQPN:           getQPN(b[repLocalQPN:]),
		LocalEECN:          get24(b[repLocalEECN:]),
		StartingPSN:        getPSN(b[repStartingPSN:]),
		ResponderResources: b[repResources],
		InitiatorDepth:     b[repDepth],
		TargetAckDelay:     b[repAckDelay] >> 3,
		Failover:           b[repAckDelay] >> 1 & 3,
		FlowControl:        b[repAckDelay]&0x01 != 0,
		RNRRetryCount:      b[repRNR] >> 5,
		SRQ:                b[repRNR]&0x10 != 0,
		LocalCAGUID:        get64(b[repLocalCAGUID:]),
		PrivateData:        [REPPrivateData]byte(b[repPrivate:]),
	}, nil
}

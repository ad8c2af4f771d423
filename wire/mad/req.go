package mad

import "github.com/softvpi/softvpi/wire/ib"

// REQPrivateData is the length of a REQ's private data. With RDMA IP addressing the first
// IPHeaderLen bytes are the IPHeader and REQConsumerData is left.
const (
	REQPrivateData  = 92
	REQConsumerData = REQPrivateData - IPHeaderLen
)

// Offsets of the fields of a REQ.
const (
	reqLocalCommID   = 24
	reqServiceID     = 32
	reqLocalCAGUID   = 40
	reqLocalQKey     = 52
	reqLocalQPN      = 56
	reqResources     = 59
	reqLocalEECN     = 60
	reqDepth         = 63
	reqRemoteEECN    = 64
	reqRemoteTimeout = 67 // remote CM response timeout, service type, flow control
	reqStartingPSN   = 68
	reqLocalTimeout  = 71 // local CM response timeout, retry count
	reqPKey          = 72
	reqMTU           = 74 // path MTU, RDC exists, RNR retry count
	reqMaxCMRetries  = 75 // max CM retries, SRQ, extended transport type
	reqPrimary       = 76
	reqAlternate     = reqPrimary + pathLen
	reqPrivate       = reqAlternate + pathLen
)

// TransportType is the transport service type of a REQ (IBA 12.7.7).
type TransportType uint8

// The transport service types.
const (
	TransportRC       TransportType = 0
	TransportUC       TransportType = 1
	TransportRD       TransportType = 2
	TransportExtended TransportType = 3 // see ExtendedType
)

// ExtendedXRC is the REQ.ExtendedType of extended reliable connections (IBA annex A14).
const ExtendedXRC = 1

// REQ is the request for communication (IBA 12.6.5).
type REQ struct {
	TransactionID           uint64
	LocalCommID             uint32
	ServiceID               uint64
	LocalCAGUID             uint64
	LocalQKey               uint32
	LocalQPN                ib.QPN
	ResponderResources      uint8 // reads and atomics that the sender serves at a time
	LocalEECN               uint32
	InitiatorDepth          uint8 // reads and atomics that the sender will have outstanding
	RemoteEECN              uint32
	RemoteCMResponseTimeout uint8 // 5 bits: see ib.CMTimeout
	TransportType           TransportType
	FlowControl             bool   // the sender does end-to-end flow control
	StartingPSN             ib.PSN // the first PSN that the receiver is to use towards the sender
	LocalCMResponseTimeout  uint8  // 5 bits
	RetryCount              uint8  // 3 bits
	PKey                    ib.PKey
	PathMTU                 ib.MTU
	RDCExists               bool
	RNRRetryCount           uint8 // 3 bits; 7: unlimited
	MaxCMRetries            uint8 // 4 bits
	SRQ                     bool
	ExtendedType            uint8 // 3 bits: ExtendedXRC
	Primary, Alternate      Path  // an alternate whose GIDs and LIDs are zero means none
	PrivateData             [REQPrivateData]byte
}

// Attribute implements Message.
func (*REQ) Attribute() uint16 { return AttrREQ }

// Transaction implements Message.
func (m *REQ) Transaction() uint64 { return m.TransactionID }

// Append implements Message. Values wider than their fields lose their high bits.
func (m *REQ) Append(b []byte) []byte {
	b, p := start(b, AttrREQ, m.TransactionID)
	put32(p[reqLocalCommID:], m.LocalCommID)
	put64(p[reqServiceID:], m.ServiceID)
	put64(p[reqLocalCAGUID:], m.LocalCAGUID)
	put32(p[reqLocalQKey:], m.LocalQKey)
	put24(p[reqLocalQPN:], uint32(m.LocalQPN))
	p[reqResources] = m.ResponderResources
	put24(p[reqLocalEECN:], m.LocalEECN)
	p[reqDepth] = m.InitiatorDepth
	put24(p[reqRemoteEECN:], m.RemoteEECN)
	p[reqRemoteTimeout] = m.RemoteCMResponseTimeout<<3 | byte(m.TransportType&3)<<1 | flag(m.FlowControl, 0x01)
	put24(p[reqStartingPSN:], uint32(m.StartingPSN))
	p[reqLocalTimeout] = m.LocalCMResponseTimeout<<3 | m.RetryCount&7
	put16(p[reqPKey:], uint16(m.PKey))
	p[reqMTU] = byte(m.PathMTU)<<4 | flag(m.RDCExists, 0x08) | m.RNRRetryCount&7
	p[reqMaxCMRetries] = m.MaxCMRetries<<4 | flag(m.SRQ, 0x08) | m.ExtendedType&7
	m.Primary.put(p[reqPrimary:])
	m.Alternate.put(p[reqAlternate:])
	copy(p[reqPrivate:], m.PrivateData[:])
	return b
}

// ParseREQ reads a REQ. The error is an *Error.
func ParseREQ(b []byte) (REQ, error) {
	tid, err := open(b, AttrREQ)
	if err != nil {
		return REQ{}, err
	}
	return REQ{
		TransactionID:           tid,
		LocalCommID:             get32(b[reqLocalCommID:]),
		ServiceID:               get64(b[reqServiceID:]),
		LocalCAGUID:             get64(b[reqLocalCAGUID:]),
		LocalQKey:               get32(b[reqLocalQKey:]),
		LocalQPN:                getQPN(b[reqLocalQPN:]),
		ResponderResources:      b[reqResources],
		LocalEECN:               get24(b[reqLocalEECN:]),
		InitiatorDepth:          b[reqDepth],
		RemoteEECN:              get24(b[reqRemoteEECN:]),
		RemoteCMResponseTimeout: b[reqRemoteTimeout] >> 3,
		TransportType:           TransportType(b[reqRemoteTimeout] >> 1 & 3),
		FlowControl:             b[reqRemoteTimeout]&0x01 != 0,
		StartingPSN:             getPSN(b[reqStartingPSN:]),
		LocalCMResponseTimeout:  b[reqLocalTimeout] >> 3,
		RetryCount:              b[reqLocalTimeout] & 7,
		PKey:                    ib.PKey(get16(b[reqPKey:])),
		PathMTU:                 ib.MTU(b[reqMTU] >> 4),
		RDCExists:               b[reqMTU]&0x08 != 0,
		RNRRetryCount:           b[reqMTU] & 7,
		MaxCMRetries:            b[reqMaxCMRetries] >> 4,
		SRQ:                     b[reqMaxCMRetries]&0x08 != 0,
		ExtendedType:            b[reqMaxCMRetries] & 7,
		Primary:                 getPath(b[reqPrimary:]),
		Alternate:               getPath(b[reqAlternate:]),
		PrivateData:             [REQPrivateData]byte(b[reqPrivate:]),
	}, nil
}
